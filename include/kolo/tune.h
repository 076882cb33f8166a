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
/// process controls the study, or it was begun with another space or metric), and, unless
/// raise_on_failed_trial is off, trial_failed after the end when trials failed.
Analysis run(Runnable trainable, Options options);

// Studies that nobody controls at the moment. `storage` is Options::storage. They throw not_found
// (no such study), already_exists (the new name is taken), failed_precondition (the study is
// running) and io. What was interrupted can be repeated.

/// Removes the study from the database, and the folders of its trials with their checkpoints. Other
/// files in the folder of the study stay.
void delete_study(const std::string& name, const std::string& storage = "");
/// Its folder gets the new name, too. Trials keep their ids.
void rename_study(const std::string& name, const std::string& new_name,
                  const std::string& storage = "");
/// A second study with the same trials, results and checkpoints.
void copy_study(const std::string& name, const std::string& new_name,
                const std::string& storage = "");

}  // namespace kolo::tune
