// What a study has on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "store/study_store.h"

namespace kolo::tune {

struct StudyFiles {
  std::filesystem::path directory;
  /// Names in the directory: folders of trials, and files that the study itself wrote. Whatever
  /// else is there belongs to somebody else.
  std::vector<std::string> entries;

  /// Of all entries together.
  [[nodiscard]] std::uintmax_t bytes() const;
};

StudyFiles files_of_study(store::StudyStore& store, const store::StudyRecord& study);

}  // namespace kolo::tune
