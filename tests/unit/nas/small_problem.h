// A regression that trains in milliseconds.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "kolo/error.h"
#include "kolo/nas/problem.h"
#include "kolo/nas/run.h"
#include "kolo/torch/data.h"
#include "kolo/torch/sampler.h"

namespace kolo::nas::test {

/// y = 2·x0 - x1 + 0.5 on a grid that every machine has alike.
inline Samples plane(std::int64_t samples, std::int64_t offset = 0) {
  torch::Tensor x = torch::empty({samples, 2});
  auto at = x.accessor<float, 2>();
  for (std::int64_t i = 0; i < samples; ++i) {
    at[i][0] = static_cast<float>((i + offset) % 17) / 8 - 1;
    at[i][1] = static_cast<float>((i + offset) % 13) / 6 - 1;
  }
  const torch::Tensor y = 2 * x.select(1, 0) - x.select(1, 1) + 0.5;
  return {{x}, {y}};
}

inline NaProblem small_problem(std::int64_t epochs = 4) {
  NaProblem problem;
  problem.load_data([] {
           return DataSplit{plane(240), plane(60, 5)};
         })
      .search_space("one_layer")
      .hyperparameters({{"batch_size", 24},
                        {"learning_rate", 0.02},
                        {"optimizer", "adam"},
                        {"num_epochs", epochs}})
      .loss("mse")
      .metrics({"r2"})
      .objective("val_r2");
  return problem;
}

inline hps::RunResult run_alpha(const NaProblem& problem, const Value& parameters,
                                const std::filesystem::path& log_dir = {}, std::int64_t id = 0) {
  hps::RunningJob job(id, parameters, log_dir, log_dir);
  return alpha(problem, job);
}

/// The message of the Error that `f` throws; "" when it throws none.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

}  // namespace kolo::nas::test
