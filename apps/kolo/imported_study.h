// A study of another tool, as it is read from that tool's files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kolo/tune/analysis.h"
#include "store/study_store.h"

namespace kolo::app {

struct ImportedTrial {
  tune::Value config = tune::Value(tune::Value::Dict{});
  std::vector<tune::Value> reports{};  ///< metrics by their names, in order
  bool is_pruned = false;
  std::string error{};  ///< "" = it did not fail
  bool has_ended = true;
  double began = 0, ended = 0;  ///< seconds since 1970; 0 = not known
};

struct ImportedStudy {
  std::string name;
  std::string tool;  ///< "Optuna"
  std::vector<tune::Objective> objectives{};
  std::vector<ImportedTrial> trials{};
};

/// What the user says about the files.
struct ImportChoice {
  std::string study;   ///< one of several in a file; "" = the only one
  std::string metric;  ///< its name, where the files have none; "" = the tool's own
};

/// Also of "." and of a path that ends with a slash.
std::string name_of_folder(const std::filesystem::path& folder);

// Each throws invalid_argument or corruption, naming the file.
/// results.csv of a search.
ImportedStudy import_deephyper(const std::filesystem::path& file, const ImportChoice& choice);
/// The folder of an experiment, with a folder for each trial.
ImportedStudy import_ray(const std::filesystem::path& folder);
ImportedStudy import_optuna_journal(const std::filesystem::path& file, const ImportChoice& choice);
/// The file is read, never written.
ImportedStudy import_optuna_sqlite(const std::filesystem::path& file, const ImportChoice& choice);

/// A folder with event files, or with folders that have some: each of these is a trial.
ImportedStudy import_tensorboard(const std::filesystem::path& folder);

/// By what the path is.
ImportedStudy import_study(const std::filesystem::path& path, const ImportChoice& choice);

/// As a study that has ended. Throws already_exists.
void write_imported(store::StudyStore& store, const ImportedStudy& study);

}  // namespace kolo::app
