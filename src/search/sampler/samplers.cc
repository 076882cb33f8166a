// The table of samplers. Adding one is a file pair and a row.
#include "base/registry.h"
#include "kolo/search/sampler.h"
#include "search/sampler/agebo_sampler.h"
#include "search/sampler/auto_sampler.h"
#include "search/sampler/bohb_sampler.h"
#include "search/sampler/cmaes_sampler.h"
#include "search/sampler/concurrency_limiter.h"
#include "search/sampler/design_samplers.h"
#include "search/sampler/evolution_samplers.h"
#include "search/sampler/forest_sampler.h"
#include "search/sampler/gp_sampler.h"
#include "search/sampler/grid_sampler.h"
#include "search/sampler/local_search_sampler.h"
#include "search/sampler/random_sampler.h"
#include "search/sampler/repeater.h"
#include "search/sampler/tpe_sampler.h"

namespace kolo::search {
namespace {

using MakeSampler = std::unique_ptr<Sampler> (*)(std::shared_ptr<const Space>, SamplerOptions);

constexpr Entry<MakeSampler> kSamplers[] = {
    {"auto", "picks one of the others by space, objectives and budget, and says why",
     make_auto_sampler},
    {"random", "independent draws from the prior", make_random_sampler},
    {"grid", "every combination of grid_search values, times samples", make_grid_sampler},
    {"sobol", "Sobol's sequence, shifted at random", make_sobol_sampler},
    {"halton", "Halton's sequence with permuted digits", make_halton_sampler},
    {"lhs", "Latin hypercubes", make_lhs_sampler},
    {"tpe", "ratio of the densities of good and other trials", make_tpe_sampler},
    {"gp", "Bayesian optimisation with a Gaussian process", make_gp_sampler},
    {"forest", "asynchronous model-based search with trees (AMBS, CBO)", make_forest_sampler},
    {"cmaes", "covariance matrix adaptation with restarts and integer margin", make_cmaes_sampler},
    {"nsga2", "genetic search for several objectives", make_nsga2_sampler},
    {"evolution", "aging (regularised) evolution", make_evolution_sampler},
    {"agebo", "aging evolution of architectures, a forest for the other parameters",
     make_agebo_sampler},
    {"local_search", "neighbours of the best trials, the promising first",
     make_local_search_sampler},
    {"bohb", "BOHB's model, to be used with the scheduler hb_bohb", make_bohb_sampler},
    {"concurrency_limiter", "another sampler with a limit to trials at once",
     make_concurrency_limiter},
    {"repeater", "another sampler, each suggestion tried several times", make_repeater},
};

/// What Tune calls its searches.
constexpr std::pair<std::string_view, std::string_view> kTunesNames[] = {
    {"bayesopt", "gp"},  {"skopt", "gp"},       {"optuna", "tpe"},
    {"hyperopt", "tpe"}, {"tune_bohb", "bohb"}, {"variant_generator", "grid"},
};

constexpr Registry<MakeSampler> kTable{"sampler", kSamplers};

}  // namespace

std::vector<SamplerInfo> samplers() {
  std::vector<SamplerInfo> infos;
  for (const auto& entry : kTable.entries()) infos.push_back({entry.name, entry.summary});
  return infos;
}

std::unique_ptr<Sampler> make_sampler(std::string_view name, std::shared_ptr<const Space> space,
                                      SamplerOptions options) {
  for (const auto& [tunes, own] : kTunesNames)
    if (name == tunes) name = own;
  return kTable.at(name).make(std::move(space), std::move(options));
}

}  // namespace kolo::search
