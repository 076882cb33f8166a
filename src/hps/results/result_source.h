// Results of a search or a study, wherever they were recorded: a results.csv, or the study itself
// in its database. Analysis reads both through this.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "hps/results/results_csv.h"

namespace kolo::hps {

/// The database of a search, in its folder.
inline constexpr const char* kDatabase = "kolo.db";

class ResultSource {
 public:
  virtual ~ResultSource() = default;
  /// What it is called; of several sources with one name, more `levels` of folders tell them apart.
  [[nodiscard]] virtual std::string name(int levels) const = 0;
  /// The folder beside which other files of the search lie; empty if there is none.
  [[nodiscard]] virtual std::filesystem::path folder() const = 0;
  [[nodiscard]] virtual ResultsTable read() = 0;
};

/// `where` is one of
///   results.csv, or another file of that form;
///   a folder with results.csv, or else with a database kolo.db, in it;
///   DATABASE or DATABASE#STUDY, where DATABASE is a file of SQLite or postgresql://…
/// Without #STUDY the database must have one study. Throws not_found, naming what there is.
std::unique_ptr<ResultSource> open_results(const std::string& where);

}  // namespace kolo::hps
