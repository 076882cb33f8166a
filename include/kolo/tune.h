// Studies: many trials of one program, with the search deciding what is tried and what goes on.
// docs/tune.md is the guide.
//
//   auto analysis = tune::run(
//       [](const tune::Config& config, tune::Session& session) {
//         for (int epoch = 1; epoch <= 10; ++epoch)
//           session.report({{"loss", train(config.at_path("lr").as_number())}});
//       },
//       {.name = "first", .metric = "loss", .mode = "min",
//        .config = {{"lr", tune::loguniform(1e-4, 1e-1)}}, .num_samples = 20});
//   analysis.best_config();
#pragma once

#include "kolo/tune/analysis.h"
#include "kolo/tune/options.h"
#include "kolo/tune/session.h"
#include "kolo/tune/trainable.h"

namespace kolo::tune {

/// Runs a study to its end, or goes on with one that was interrupted. Blocks. Everything is in the
/// database before it is acted on, so the process may be killed at any instant and resumed.
///
/// With the executors `process` and `ranks` the program runs itself again, with the same arguments,
/// for each trial: up to this call, which then runs the trainable and ends the process.
///
/// Throws invalid_argument (options that contradict each other, resources that can never be had),
/// already_exists (the name is taken and `resume` is not asked for), failed_precondition (another
/// process controls the study), and, unless raise_on_failed_trial is off, internal after the end
/// when trials failed.
Analysis run(Runnable trainable, Options options);

}  // namespace kolo::tune
