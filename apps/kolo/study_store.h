// The database of studies, as the commands about them open it.
#pragma once

#include <memory>
#include <string>

#include "cli/option.h"
#include "kolo/tune/analysis.h"
#include "names.h"
#include "store/study_store.h"

namespace kolo::app {

inline constexpr cli::OptionText kStorage{
    "storage",
    "URL",
    "Use the studies of this database: a file, or postgresql://user@host/database.",
    {.variables = "STORAGE", .fallback = "~/kolo_results/kolo.db"}};
inline constexpr cli::OptionText kStudyArgument{
    "STUDY", "", "The name of the study; `kolo studies` lists them.", {.names = study_names}};
/// For commands that only read.
inline constexpr cli::OptionText kStudyOrNewest{
    "STUDY",
    "",
    "The name of the study; `kolo studies` lists them.",
    {.fallback = "the newest study", .names = study_names, .is_optional = true}};
inline constexpr cli::OptionText kJsonOutput{"json", "", "Print JSON instead of a table."};

/// `storage` as in --storage; "" = the default place. Throws not_found.
struct OpenStore {
  explicit OpenStore(const std::string& storage);
  std::unique_ptr<store::Database> database;
  std::unique_ptr<store::StudyStore> store;
};

/// The name as it was given, else that of the study that was created last. Throws not_found where
/// there is none.
std::string study_or_newest(store::StudyStore& store, const std::string& given);

/// A cell of a table, for people: numbers have five digits.
std::string cell_text(const tune::Value& value);
/// A configuration in one line: "lr=0.012166, model/units=64".
std::string short_text(const tune::Value& value);
void print_table(const tune::Table& table);

/// A trial by its number or id. Throws not_found.
std::int64_t trial_number(store::StudyStore& store, const store::StudyRecord& study,
                          const std::string& text);

}  // namespace kolo::app
