// A study around any program: what `kolo tune` does.
//
// Its description is one JSON object, from a file, from options, or from the database when it is
// resumed. docs/tune.md lists the keys.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "kolo/tune/analysis.h"
#include "kolo/tune/options.h"
#include "tune/output/observer.h"

namespace kolo::tune {

/// Known keys of a description, for messages.
std::vector<std::string_view> description_keys();

/// "tpe" or "tpe:n_startup=5,gamma=0.2" as {"name": …, "settings": {…}}.
Json parse_algorithm(std::string_view text);

struct ProgramStudy {
  Options options;
  std::vector<std::string> program;  ///< with {parameters}
  int np = 1;                        ///< ranks of each trial
  std::string executor;              ///< "" = process, or ranks where np > 1
  std::string directory;             ///< where trials start
  Json description;                  ///< what from_json was given

  /// Throws invalid_argument, naming the key.
  static ProgramStudy from_json(const Json& description);
  /// The metric of the first objective; "" = none.
  [[nodiscard]] std::string first_metric() const;
};

/// The program's words for one trial: {lr}, {model/units}, {trial_dir}, {trial_id} and {checkpoint}
/// are replaced. Throws invalid_argument for names that the configuration does not have.
std::vector<std::string> fill_in(const std::vector<std::string>& program, const Value& config,
                                 const std::string& trial_id, const std::string& trial_dir,
                                 const std::string& checkpoint);

/// Before the first trial: throws invalid_argument for a {NAME} that no configuration of the space
/// has, with the nearest name, and not_found for a program that does not exist or cannot be run.
void check_program(const std::vector<std::string>& program, const search::Space& space,
                   const std::filesystem::path& directory = {});

struct ProgramRun {
  std::vector<std::shared_ptr<Observer>> observers;
  const std::atomic<bool>* interrupted = nullptr;
  std::string kolo;  ///< path of this program, for `kolo run`
};

struct ProgramResult {
  Analysis analysis;
  bool interrupted = false;
};

/// Runs it to its end. Throws as tune::run does.
ProgramResult run_program_study(ProgramStudy study, const ProgramRun& run);

}  // namespace kolo::tune
