// What `kolo hps`, `kolo nas` and `kolo submit` can be told about a search.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "hps/search/search_plan.h"
#include "kolo/nas/ppo.h"

namespace kolo::app {

/// One search that can be named on the command line.
struct SearchRow {
  std::string_view name;
  std::string_view sampler;
  std::string_view summary;
  /// Which further options it takes.
  bool models = false;   ///< --surrogate-model, --acq-func …
  bool evolves = false;  ///< --population-size, --sample-size
};
std::span<const SearchRow> hps_searches();
std::span<const SearchRow> nas_searches();

/// What every search takes. Most of it goes into the plan as it is.
struct SearchOptions {
  SearchOptions() { plan.max_evals = 1'000'000; }

  std::string search;
  hps::SearchPlan plan;
  std::optional<double> timeout;
  double eval_timeout_minutes = 4096;
  std::string hosts, cluster;
  std::vector<std::string> set;
  std::string surrogate_model, liar_strategy, acq_func;
  std::optional<double> kappa, xi;
  int n_jobs = 1;
  std::optional<std::int64_t> population_size, sample_size;
  bool json = false, quiet = false;
};
/// What PPO takes besides.
struct PpoCommandOptions {
  std::optional<int> num_agents;
  nas::PpoOptions ppo;
};

/// Headings of options that only some searches take.
inline constexpr std::string_view kModelHeading = "Model-based searches";
inline constexpr std::string_view kEvolutionHeading = "Evolutionary searches";
inline constexpr std::string_view kPpoHeading = "PPO";

/// Adds the options that describe a search: those of the search itself, where evaluations run, and
/// those of the algorithm. A search in a queue has no others.
void declare_search(cli::OptionSet& set, SearchOptions& options);
/// Adds those that only a search that runs here takes: --evaluator, --hosts, --resume, output.
void declare_search_here(cli::OptionSet& set, SearchOptions& options);
void declare_ppo(cli::OptionSet& set, PpoCommandOptions& options);

/// kolo hps
struct HpsOptions : SearchOptions {
  std::vector<std::string> program;
  void declare(cli::OptionSet& set);
};
/// kolo nas
struct NasOptions : SearchOptions, PpoCommandOptions {
  void declare(cli::OptionSet& set);
};
/// kolo nas draw
struct NasDrawOptions {
  std::string problem, arch, output;
  bool dot = false;
  void declare(cli::OptionSet& set);
};
/// kolo nas post-train
struct NasPostTrainOptions {
  std::string problem, log_dir = ".", run = "alpha";
  int k = 5, threads = 1;
  std::optional<std::int64_t> num_epochs, repeat;
  void declare(cli::OptionSet& set);
};
/// One evaluation in a process of its own; for programs.
struct EvaluateOptions {
  std::string problem, run, log_dir;
  int threads = 1;
  void declare(cli::OptionSet& set);
};

/// The commands of nas as the help tells of them: `kolo` describes them, `kolo-nas` runs them.
inline constexpr cli::Command kNasSearchAbout{
    .name = "nas",
    .summary = "Search for the network architecture with the largest objective",
    .examples =
        "kolo nas regevo --problem benchmark.nas.linear_reg --max-evals 50\n"
        "kolo nas agebo --problem benchmark.nas.digits --evaluator ranks "
        "--num-ranks-per-node 2\n",
    .notes =
        "Results go to results.csv in the folder of --log-dir; `kolo analytics` reads them. "
        "`kolo nas list` shows problems, spaces and run functions.",
    .options = cli::declared<NasOptions>,
};
inline constexpr cli::Command kNasDrawAbout{
    .name = "draw",
    .summary = "Draw a space of architectures, or one architecture of it",
    .examples = "kolo nas draw --problem benchmark.nas.linear_reg -o space.svg\n",
    .options = cli::declared<NasDrawOptions>,
};
inline constexpr cli::Command kNasPostTrainAbout{
    .name = "post-train",
    .summary = "Train the best architectures of a search again, for longer",
    .examples =
        "kolo nas post-train --problem benchmark.nas.linear_reg --log-dir log -k 3 "
        "--num-epochs 100\n",
    .notes = "The models and their results go to the folder post_training inside --log-dir.",
    .options = cli::declared<NasPostTrainOptions>,
};
inline constexpr cli::Command kNasListAbout{
    .name = "list",
    .summary = "List built-in problems, spaces and run functions of architecture search",
    .examples = "kolo nas list\n",
    .options = cli::declared<cli::NoOptions>,
};

}  // namespace kolo::app
