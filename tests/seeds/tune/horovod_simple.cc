// The listings of the guide "Distributed hyperparameter search", in C++: each prints one line.
#include <kolo/kolo.h>
#include <kolo/tune.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>

namespace tune = kolo::tune;

namespace {

void training_function(const tune::Config& config) {
  kolo::init();
  for (int i = 0; i < config.at_path("epochs").as_integer(); ++i) {
    std::vector<float> gradient(4, static_cast<float>(config.at_path("lr").as_number()));
    kolo::world().allreduce(std::span(gradient));
    tune::report({{"test", 1}, {"rank", kolo::rank()}, {"size", kolo::size()}});
  }
}

/// Basic usage: 2 · 3 · 3 trials of two ranks each.
void basic() {
  auto trainable = tune::DistributedTrainable(training_function, {.num_slots = 2});
  const auto analysis =
      tune::run(trainable, {.name = "basic",
                            .metric = "test",
                            .mode = "max",
                            .config = {{"epochs", tune::grid_search({1, 2, 3})},
                                       {"lr", tune::grid_search({0.1, 0.2, 0.3})}},
                            .num_samples = 2,
                            .verbose = 0});
  std::size_t reports = 0;
  for (const auto& trial : analysis.trials()) reports += trial.results.size();
  std::cout << "basic: " << analysis.trials().size() << " trials, " << reports << " reports of "
            << analysis.best_result().at_path("size").as_integer() << " ranks, best has "
            << analysis.best_config().as_dict().size() << " parameters\n";
}

/// Bayesian optimisation, at most four trials at once.
void bayesian() {
  auto algo = tune::ConcurrencyLimiter(tune::BayesOptSearch(), 4);
  const auto results = tune::run(
      [](const tune::Config& config) {
        const double lr = config.at_path("lr").as_number();
        tune::report({{"mean_loss", (lr - 0.03) * (lr - 0.03)}});
      },
      {.name = "horovod",
       .metric = "mean_loss",
       .mode = "min",
       .config = {{"lr", tune::uniform(0.001, 0.1)}},
       .num_samples = 20,
       .search_alg = algo,
       .verbose = 0});
  const double lr = results.best_config().at_path("lr").as_number();
  std::cout << "bayesian: " << (std::abs(lr - 0.03) < 0.003 ? "found" : "missed") << " the rate\n";
}

/// An axis of a grid, and the random primitives.
void spaces() {
  const auto trainable = [](const tune::Config&) { tune::report({{"done_steps", 1}}); };
  const auto grid = tune::run(
      trainable,
      {.name = "grid", .config = {{"bar", tune::grid_search({true, false})}}, .verbose = 0});
  const auto drawn =
      tune::run(trainable, {.name = "drawn",
                            .config = {{"param1", tune::choice({true, false})},
                                       {"bar", tune::uniform(0, 10)},
                                       {"alpha", tune::sample_from([](const auto& config) {
                                          return std::pow(100 * config.random(), 2);
                                        })},
                                       {"const", "hello"}},
                            .verbose = 0});
  const auto& config = drawn.trials()[0].config;
  std::cout << "spaces: " << grid.trials().size() << " trials of the grid, bar in range "
            << (config.at_path("bar").as_number() < 10) << ", alpha in range "
            << (config.at_path("alpha").as_number() < 10000) << ", const "
            << config.at_path("const").as_string() << "\n";
}

/// Twenty iterations, with checkpoints, and everything that an Analysis says about the best.
void results() {
  const auto analysis = tune::run(
      [](const tune::Config& config, tune::Session& session) {
        for (;;) {
          session.save_checkpoint([](const std::filesystem::path& directory) {
            std::ofstream(directory / "weights") << "w";
          });
          session.report({{"score", config.at_path("lr").as_number()}});
        }
      },
      {.name = "results",
       .metric = "score",
       .mode = "max",
       .config = {{"lr", tune::uniform(0.001, 0.1)}},
       .num_samples = 3,
       .search_alg = tune::ConcurrencyLimiter(tune::BayesOptSearch(), 4),
       .stop = {{"training_iteration", 20}},
       .verbose = 0});
  std::cout << "results: best trial made " << analysis.best_trial().results.size()
            << " iterations, its folder " << std::filesystem::exists(analysis.best_logdir())
            << ", its checkpoint "
            << std::filesystem::exists(analysis.best_checkpoint() / "weights")
            << ", its last result "
            << analysis.best_result().at_path("training_iteration").as_integer() << ", as a table "
            << !analysis.best_result_df().to_csv().empty() << "\n";
}

}  // namespace

int main() {
  basic();
  bayesian();
  spaces();
  results();
}
