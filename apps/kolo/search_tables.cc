// The searches of `kolo hps` and `kolo nas`, and the options of PPO.
#include "search_command.h"

namespace kolo::app {
namespace {

constexpr SearchRow kHpsSearches[] = {
    {"ambs", "forest", "asynchronous model-based search, with trees (DeepHyper's AMBS and CBO)",
     true},
    {"random", "random", "independent draws"},
    {"tpe", "tpe", "densities of good and of other points"},
    {"gp", "gp", "Bayesian optimisation with a Gaussian process"},
    {"cmaes", "cmaes", "covariance matrix adaptation"},
    {"evolution", "evolution", "aging evolution (also regevo)", false, true},
    {"regevo", "evolution", "aging evolution", false, true},
    {"auto", "auto", "picks one of the others and says why"},
    {"local_search", "local_search", "neighbours of the best points"},
    {"nsga2", "nsga2", "genetic search, for several objectives"},
    {"ga", "nsga2", "genetic search"},
    {"sobol", "sobol", "Sobol's sequence"},
    {"halton", "halton", "Halton's sequence"},
    {"lhs", "lhs", "Latin hypercubes"},
    {"grid", "grid", "every combination"},
};

constexpr SearchRow kNasSearches[] = {
    {"random", "random", "independent draws"},
    {"regevo", "evolution", "aging evolution: one different operation per child", false, true},
    {"agebo", "agebo", "evolution of architectures, Bayesian optimisation of the rest", false,
     true},
    {"ppo", "ppo", "a policy that learns, one agent per rank (--num-agents)"},
    {"ambs", "forest", "model-based search with trees", true},
    {"ambsmixed", "forest", "model-based search of architectures and the rest together", true},
    {"regevomixed", "evolution", "evolution of architectures and the rest together", false, true},
    {"local_search", "local_search", "neighbours of the best architectures"},
    {"tpe", "tpe", "densities of good and of other architectures"},
    {"auto", "auto", "picks one of the others and says why"},
};

constexpr Setting kPpoSettings[] = {
    {"num-agents", "", "", "N", "1", "ppo: agents that learn together, one process each"},
    {"network", "", "", "NAME", "ppo_lnlstm_128", "ppo: ppo_{lstm,lnlstm}_{32,64,128}"},
    {"cliprange", "", "", "X", "0.2", "ppo"},
    {"ent-coef", "", "", "X", "0.01", "ppo: weight of the entropy"},
    {"gamma", "", "", "X", "1.0", "ppo"},
    {"lam", "", "", "X", "0.95", "ppo"},
    {"nminibatches", "", "", "N", "1", "ppo"},
    {"noptepochs", "", "", "N", "10", "ppo: passes over a batch"},
    {"lr", "", "", "X", "3e-4", "ppo: learning rate of the policy"},
    {"vf-coef", "", "", "X", "0.5", "ppo: weight of the value function"},
    {"max-grad-norm", "", "", "X", "0.5", "ppo"},
};

}  // namespace

std::span<const SearchRow> hps_searches() { return kHpsSearches; }
std::span<const SearchRow> nas_searches() { return kNasSearches; }
std::span<const Setting> ppo_settings() { return kPpoSettings; }

}  // namespace kolo::app
