// What `kolo new-problem` writes. @NAME@, @KIND@, @INCLUDE@ and @TORCH@ are filled in.
#pragma once

#include <string_view>

namespace kolo::app {

inline constexpr std::string_view kHpsProblem =
    R"(// The problem @NAME@: what is searched, and how a configuration is judged. Searches maximise.
#include <kolo/hps/sdk.h>

#include <cmath>

KOLO_HPS_PROBLEM(Problem) {
  kolo::hps::HpProblem problem;
  problem.add_hyperparameter({1e-4, 1e-1, "log-uniform"}, "rate", 1e-2);
  problem.add_hyperparameter({1, 8}, "layers");
  problem.add_hyperparameter({"relu", "tanh"}, "activation");
  problem.add_starting_point({{"rate", 1e-2}, {"layers", 2}, {"activation", "relu"}});
  return problem;
}

// Train something here. `job` has the configuration; "F_…" instead of a number is a failure.
KOLO_HPS_RUN(run) {
  const double rate = std::log10(job["rate"].as_number());
  const double layers = job["layers"].as_number();
  const double bonus = job["activation"].as_string() == "relu" ? 0.1 : 0.0;
  return bonus - (rate + 2.5) * (rate + 2.5) - 0.05 * (layers - 4) * (layers - 4);
}
)";

inline constexpr std::string_view kHpsBuild = R"(cmake_minimum_required(VERSION 3.20)
project(@NAME@ LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# The headers of the kolo that will load it; nothing of kolo is linked.
set(KOLO_INCLUDE "@INCLUDE@" CACHE STRING "folders with kolo/hps.h and kolo/version.h")
add_library(@NAME@ MODULE problem.cc)
target_include_directories(@NAME@ PRIVATE ${KOLO_INCLUDE})
)";

inline constexpr std::string_view kNasProblem =
    R"(// The problem @NAME@: data, a space of architectures, and how they are trained.
#include <kolo/nas/sdk.h>

// y = x0 + … + x3, learned from 2,000 samples.
static kolo::nas::DataSplit load_data() {
  torch::manual_seed(1);
  const auto x = torch::rand({2000, 4}) * 2 - 1;
  const auto y = x.sum(1, /*keepdim=*/true);
  return {.train = {{x.slice(0, 0, 1600)}, {y.slice(0, 0, 1600)}},
          .validation = {{x.slice(0, 1600)}, {y.slice(0, 1600)}}};
}

KOLO_NAS_PROBLEM(Problem) {
  kolo::nas::NaProblem problem;
  problem.load_data(load_data);
  problem.search_space("dense_skip_co", {{"num_layers", 3}});
  problem.hyperparameters({{"batch_size", 32},
                           {"learning_rate", 0.01},
                           {"optimizer", "adam"},
                           {"num_epochs", 3}});
  problem.loss("mse");
  problem.metrics({"r2"});
  problem.objective("val_r2");
  return problem;
}
)";

inline constexpr std::string_view kNasBuild = R"(cmake_minimum_required(VERSION 3.20)
project(@NAME@ LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# The libtorch of the kolo that will load it: another one cannot be in the same process.
@TORCH@find_package(Torch REQUIRED)
# The headers of the kolo that will load it; nothing of kolo is linked.
set(KOLO_INCLUDE "@INCLUDE@" CACHE STRING "folders with kolo/nas.h and kolo/version.h")
add_library(@NAME@ MODULE problem.cc)
target_include_directories(@NAME@ PRIVATE ${KOLO_INCLUDE})
target_link_libraries(@NAME@ PRIVATE torch)
)";

inline constexpr std::string_view kProblemReadme = R"(# @NAME@

A problem for `kolo @KIND@`: problem.cc has all of it.

    cmake -S . -B build && cmake --build build
    kolo @KIND@ random --problem build/lib@NAME@.so:Problem --max-evals 20 --log-dir log
    kolo analytics topk log -k 3
)";

}  // namespace kolo::app
