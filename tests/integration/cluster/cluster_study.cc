// A study of a function of this program whose trials run on a cluster, two ranks each:
//   kolo_cluster_study CLUSTER DIRECTORY
// Prints the number of trials, and the hosts that they ran on.
#include <kolo/kolo.h>
#include <kolo/tune.h>
#include <unistd.h>

#include <array>
#include <iostream>
#include <set>

namespace tune = kolo::tune;

namespace {

void train(const tune::Config& config) {
  kolo::init();
  const double sum = kolo::world().allreduce(1.0, kolo::ReduceOp::sum);
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  tune::report({{"loss", config.at_path("x").as_number()}, {"ranks", sum}, {"on", host.data()}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    tune::Options options;
    options.name = "function";
    options.metric = "loss";
    options.mode = "min";
    options.config = {{"x", tune::grid_search({1, 2, 3, 4, 5, 6})}};
    options.cluster = argv[1];
    options.local_dir = argv[2];
    options.verbose = 0;
    const auto analysis =
        tune::run(tune::DistributedTrainable(train, {.num_slots = 2}), std::move(options));
    std::set<std::string> hosts;
    for (const auto& trial : analysis.trials()) {
      if (trial.last_result.at_path("ranks").as_number() != 2) return 1;
      hosts.insert(trial.last_result.at_path("on").as_string());
    }
    std::cout << analysis.trials().size() << " trials on";
    for (const auto& host : hosts) std::cout << " " << host;
    std::cout << "\n";
    return 0;
  } catch (const kolo::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
