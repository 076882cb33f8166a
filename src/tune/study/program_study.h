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
#include "launch/hosts.h"
#include "tune/output/observer.h"
#include "tune/study/placeholders.h"

namespace kolo::tune {

/// Known keys of a description, for messages.
std::vector<std::string_view> description_keys();

/// "tpe" or "tpe:n_startup=5,gamma=0.2" as {"name": …, "settings": {…}}.
Json parse_algorithm(std::string_view text);

struct ProgramStudy {
  Options options;
  std::vector<std::string> program;  ///< with {parameters}
  /// Ranks of each trial; of one whose ranks change (Resources::ranks), the least.
  int np = 1;
  int virtual_ranks = 0;            ///< of trials whose ranks change; 0 = the program decides
  std::string executor;             ///< "" = process, or ranks where np > 1
  std::vector<launch::Host> hosts;  ///< where trials run; none = here
  std::string batch_system;         ///< whose nodes these are; "" = they are reached by ssh
  std::string cluster;              ///< on whose hosts trials run; "" = none
  std::string directory;            ///< where trials start
  /// With so many failed trials in a session the study ends, if none has ever succeeded; 0 = never.
  std::int64_t give_up_after = 20;
  Json description;  ///< what from_json was given

  /// Throws invalid_argument, naming the key.
  static ProgramStudy from_json(const Json& description);
  /// The metric of the first objective; "" = none.
  [[nodiscard]] std::string first_metric() const;
};

/// Before the first trial: throws invalid_argument for a {NAME} that no configuration of the space
/// has, with the nearest name, and not_found for a program that does not exist or cannot be run.
void check_program(const std::vector<std::string>& program, const search::Space& space,
                   const std::filesystem::path& directory = {});

/// What the program that runs a study gives it.
struct ProgramStudyCaller {
  std::vector<std::shared_ptr<Observer>> observers;
  const std::atomic<bool>* interrupted = nullptr;
  std::string kolo;  ///< path of this program, for `kolo run`
};

struct ProgramResult {
  Analysis analysis;
  bool interrupted = false;
  bool gave_up = false;  ///< ProgramStudy::give_up_after
};

/// Runs it to its end. Throws as tune::run does.
ProgramResult run_program_study(ProgramStudy study, const ProgramStudyCaller& run);

}  // namespace kolo::tune
