// A user's library, as docs describe it: headers of kolo and of libtorch, nothing of kolo linked.
#include "kolo/nas/sdk.h"

KOLO_NAS_PROBLEM(Problem) {
  kolo::nas::NaProblem problem;
  problem
      .load_data([] {
        const torch::Tensor x = torch::linspace(-1, 1, 100).unsqueeze(1);
        const kolo::nas::Samples samples{{x}, {3 * x + 1}};
        return kolo::nas::DataSplit{samples, samples};
      })
      .search_space("one_layer")
      .hyperparameters({{"batch_size", 10}, {"learning_rate", 0.02}, {"num_epochs", 30}})
      .loss("mse")
      .metrics({"r2"})
      .objective("val_r2");
  return problem;
}

// An architecture space of the user's own, and a run function for it.
KOLO_NAS_PROBLEM(Wide) {
  kolo::nas::NaProblem problem = kolo_nas_make_Problem();
  problem.search_space([](const auto& inputs, const auto& outputs, const auto&) {
    auto space = std::make_shared<kolo::nas::KSearchSpace>(inputs, outputs);
    const auto layer = space->add_variable(
        "wide", {kolo::nas::op::dense(64, "tanh"), kolo::nas::op::dense(128, "tanh")});
    space->connect(space->input(), layer);
    kolo::nas::add_outputs(*space);
    return space;
  });
  return problem;
}

KOLO_HPS_RUN(half) {
  kolo::hps::RunResult result = kolo::nas::alpha(kolo_nas_make_Wide(), job);
  if (!result.failed()) result.objectives[0] /= 2;
  return result;
}
