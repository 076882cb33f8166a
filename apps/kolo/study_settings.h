// What the commands that look at studies share.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "settings.h"
#include "store/study_store.h"

namespace kolo::app {

/// --storage and --help.
inline constexpr Setting kStorageSetting{
    "storage",
    "",
    "STORAGE",
    "URL",
    "~/kolo_results/kolo.db",
    "the database: a file, or postgresql://user@host/database"};
inline constexpr Setting kHelpSetting{"help", "-h", "", "", "", "print this and exit"};

/// The database of --storage, KOLO_STORAGE or the default place.
struct OpenStore {
  explicit OpenStore(const Settings& settings);
  std::unique_ptr<store::Database> database;
  std::unique_ptr<store::StudyStore> store;
};

/// Options anywhere, and exactly the wanted number of other words. Throws invalid_argument.
struct ParsedCommand {
  ParsedCommand(std::span<const Setting> table, const std::vector<std::string>& arguments,
                std::string_view usage, std::size_t least, std::size_t most);
  Settings settings;
  std::vector<std::string> words;
  bool help = false;  ///< was asked for, and has been printed
};

/// A trial by its number or id. Throws not_found.
std::int64_t trial_number(store::StudyStore& store, const store::StudyRecord& study,
                          const std::string& text);

}  // namespace kolo::app
