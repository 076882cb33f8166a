// The description of a study in the database: `kolo resume` starts it again from this, and readers
// learn its objectives.
#pragma once

#include <string>
#include <vector>

#include "kolo/tune/options.h"

namespace kolo::tune {

/// Version 1 of the JSON in studies.spec. Fields are added, never changed.
struct StudySpec {
  std::string trainable = "trainable";
  std::vector<Objective> objectives;
  std::string search, scheduler;
  std::string space;             ///< JSON, where it was given as text; "" = written in C++
  std::string outline;           ///< search::Space::outline(); "" in studies of older versions
  std::int64_t num_samples = 0;  ///< 0 in studies of older versions
  /// What the command line was given, as JSON; "" = the study belongs to a C++ program.
  std::string command;

  [[nodiscard]] std::string to_json() const;
  /// Throws corruption.
  static StudySpec from_json(std::string_view text);
};

}  // namespace kolo::tune
