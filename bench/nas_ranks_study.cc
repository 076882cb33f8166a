// What data-parallel evaluations cost in accuracy, and what joint tuning gives back (Egele et al.,
// "AgEBO-Tabular", 2021): with n ranks per evaluation the linear scaling rule takes n times the
// samples a step and n times the rate, and the best network that evolution (AgE) finds becomes
// worse as n grows; searching batch and rate together with the architecture (AgEBO) keeps it.
//
//   nas_ranks_study measure --out FILE [--ranks N] [--quick]   searches; one line of JSON each
//   kolo run -np N nas_ranks_study check                       the same trainings with real ranks
//   nas_ranks_study report FILE [--markdown FILE] [--svg FILE]
//
// Without warm-up, n ranks with batch b and rate r are one process with batch n·b and rate n·r:
// every step sees the same samples. So the searches run in one process, which takes a machine of
// two cores minutes instead of hours, and `check` trains some of the same networks with ranks and
// compares. bench/nas_ranks.sh does all of it.
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "kolo/context.h"
#include "kolo/nas/problem.h"
#include "kolo/nas/run.h"
#include "kolo/random.h"
#include "kolo/search.h"
#include "kolo/torch/data.h"
#include "kolo/torch/threads.h"
#include "support/nas_ranks_report.h"

namespace {

using namespace kolo;
using Json = nlohmann::json;

// The rate and the rule are those of the reference's runs with fixed hyperparameters; the batch is
// theirs (256) scaled down with the data.
constexpr int kBatch = 32;
constexpr double kRate = 0.01;
constexpr int kEpochs = 10;
// Every batch of the search space divides it, so that no rank repeats a sample.
constexpr std::size_t kTrainingSamples = 1024;
constexpr int kRanks[] = {1, 2, 4, 8};

struct Effort {
  int seeds = 5;
  int evaluations = 80;
};

nas::NaProblem problem_of(const std::string& method, std::uint64_t seed) {
  nas::NaProblem problem = nas::load_na_problem("benchmark.nas.digits_dense").problem;
  const nas::DataSplit all = problem.data();
  problem
      .load_data([all] {
        const auto count = static_cast<std::int64_t>(kTrainingSamples);
        return nas::DataSplit{
            {{all.train.inputs[0].narrow(0, 0, count)}, {all.train.targets[0].narrow(0, 0, count)}},
            all.validation};
      })
      .seed(seed)
      .hyperparameters({{"batch_size", kBatch},
                        {"learning_rate", kRate},
                        {"num_epochs", kEpochs},
                        {"warmup_lr", false}});
  if (method == "agebo")
    problem.hyperparameters({{"batch_size", search::ordinal({8, 16, 32, 64, 128})},
                             {"learning_rate", search::loguniform(0.0001, 0.1)}});
  return problem;
}

/// What `ranks` ranks would do with this configuration, in one process.
search::Value as_one_process(const nas::NaProblem& problem, const search::Value& configuration,
                             int ranks) {
  search::Value::Dict values = problem.hyperparameters_of(configuration).as_dict();
  values["batch_size"] = values.at("batch_size").as_integer() * ranks;
  values["learning_rate"] = values.at("learning_rate").as_number() * ranks;
  values["arch_seq"] = configuration.at_path("arch_seq");
  return values;
}

double objective_of(const hps::RunResult& result) {
  return result.failed() ? 0.0 : result.objectives[0];
}

double train_alone(const nas::NaProblem& problem, const search::Value& configuration, int ranks) {
  hps::RunningJob job(0, as_one_process(problem, configuration, ranks), {});
  return objective_of(nas::alpha(problem, job));
}

/// The same training, judged by the digits that no search has seen.
double test_accuracy(nas::NaProblem problem, const search::Value& configuration, int ranks) {
  const nas::DataSplit known = problem.data();
  problem.load_data([known] {
    const Dataset test = load_digits(Split::test);
    return nas::DataSplit{known.train, {{test.inputs}, {test.targets}}};
  });
  return train_alone(problem, configuration, ranks);
}

Json search_once(const std::string& method, int ranks, std::uint64_t seed, int evaluations) {
  const nas::NaProblem problem = problem_of(method, seed);
  const auto space = problem.space();
  search::SamplerOptions options;
  options.directions = {search::Direction::maximize};
  options.seed = seed;
  options.settings = {{"population", 20}, {"sample", 5}};
  const auto sampler =
      search::make_sampler(method == "age" ? "evolution" : "agebo", space, options);
  double best = -1;
  search::Value configuration;
  for (int i = 0; i < evaluations; ++i) {
    const search::TrialId id{static_cast<std::uint64_t>(i)};
    const auto point = sampler->ask(id);
    Random random(seed);
    const search::Value asked = space->config(point.value(), random);
    const double objective = train_alone(problem, asked, ranks);
    sampler->tell(id, search::Outcome::complete(objective));
    if (objective > best) {
      best = objective;
      configuration = asked;
    }
  }
  return {{"method", method},
          {"ranks", ranks},
          {"seed", seed},
          {"evaluations", evaluations},
          {"validation", best},
          {"test", test_accuracy(problem, configuration, ranks)},
          {"configuration", Json::parse(configuration.to_string())}};
}

/// `only` 0: all numbers of ranks.
int measure(const std::string& out, Effort effort, int only) {
  set_compute_threads(1);
  for (int seed = 1; seed <= effort.seeds; ++seed)
    for (const int ranks : kRanks) {
      if (only != 0 && ranks != only) continue;
      for (const char* method : {"age", "agebo"}) {
        const Json line =
            search_once(method, ranks, static_cast<std::uint64_t>(seed), effort.evaluations);
        std::ofstream(out, std::ios::app) << line.dump() << "\n";
        std::printf("%d ranks, seed %d, %-5s: validation %.4f, test %.4f\n", ranks, seed, method,
                    line["validation"].get<double>(), line["test"].get<double>());
        std::fflush(stdout);
      }
    }
  return 0;
}

int check() {
  init();
  set_compute_threads(1);
  constexpr int kConfigurations = 8;
  const nas::NaProblem problem = problem_of("agebo", 1);
  const auto space = problem.space();
  Random random(1);
  double largest = 0;
  for (int i = 0; i < kConfigurations; ++i) {
    const search::Value asked = space->config(space->sample(random), random);
    hps::RunningJob job(i, asked, {});
    const double together = objective_of(nas::distributed(problem, job));
    const double alone = train_alone(problem, asked, size());
    largest = std::max(largest, std::abs(together - alone));
    if (rank() == 0)
      std::printf("check: %d ranks %.6f, one process %.6f\n", size(), together, alone);
  }
  if (rank() == 0)
    std::printf("check: %d ranks differ from one process by at most %.4f in accuracy\n", size(),
                largest);
  shutdown();
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto value_of = [&](const std::string& flag) -> std::string {
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] == flag) return words[i + 1];
    return "";
  };
  const bool quick = std::find(words.begin(), words.end(), "--quick") != words.end();
  if (!words.empty() && words[0] == "measure" && !value_of("--out").empty())
    return measure(value_of("--out"), quick ? Effort{.seeds = 2, .evaluations = 30} : Effort{},
                   std::atoi(value_of("--ranks").c_str()));
  if (!words.empty() && words[0] == "check") return check();
  if (words.size() >= 2 && words[0] == "report")
    return bench::report_ranks(words[1], value_of("--markdown"), value_of("--svg"));
  std::fprintf(stderr,
               "nas_ranks_study measure --out FILE [--ranks N] [--quick] | check | report FILE "
               "[--markdown FILE] "
               "[--svg FILE]\n");
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "nas_ranks_study: %s\n", error.what());
  return 1;
}
