// A grid of nine settings, each tried twice, each trial a ring of two ranks: 18 trials.
//
//   build/release/bin/kolo_tune_grid [DIRECTORY]      prints:  18 trials, best {"epochs": 3, …}
#include <kolo/kolo.h>
#include <kolo/tune.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

namespace tune = kolo::tune;

namespace {

void training_function(const tune::Config& config) {
  kolo::init();
  double loss = 1;
  for (int epoch = 1; epoch <= config.at_path("epochs").as_integer(); ++epoch) {
    // A step of "training": every rank has a gradient, all move by their average.
    const double gradient = loss * (0.5 + kolo::rank());
    loss -= config.at_path("lr").as_number() *
            kolo::world().allreduce(gradient, kolo::ReduceOp::average);
    tune::report({{"loss", loss}, {"rank", kolo::rank()}});
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string directory =
      argc > 1 ? argv[1] : (std::filesystem::temp_directory_path() / "kolo_tune_grid").string();
  try {
    const auto trainable = tune::DistributedTrainable(training_function, {.num_slots = 2});
    tune::Options options;
    options.name = "grid";
    options.metric = "loss";
    options.mode = "min";
    options.config = {{"epochs", tune::grid_search({1, 2, 3})},
                      {"lr", tune::grid_search({0.1, 0.2, 0.3})}};
    options.num_samples = 2;
    options.total_resources = tune::Resources{.cpu = 2};
    options.resume = tune::Resume::automatic;
    options.local_dir = directory;
    const auto analysis = tune::run(trainable, options);
    std::cout << analysis.trials().size() << " trials, best " << analysis.best_config().to_string()
              << "\n";
    const bool right = analysis.trials().size() == 18 &&
                       analysis.best_config().at_path("epochs").as_integer() == 3 &&
                       analysis.best_config().at_path("lr").as_number() == 0.3;
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const kolo::Error& error) {
    std::cerr << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
