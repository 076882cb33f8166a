// What was done through the dashboard, by whom and when: a line of JSON for each action.
#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"
#include "base/mutex.h"

namespace kolo::dashboard {

class ActionLog {
 public:
  /// "" = nothing is written.
  explicit ActionLog(std::filesystem::path file) : file_(std::move(file)) {}

  /// `who` is the address that the request came from. What cannot be written is logged as a
  /// warning.
  void note(const std::string& who, const std::string& action, const Json& what,
            const std::string& outcome);

 private:
  Mutex mutex_;
  const std::filesystem::path file_;
};

}  // namespace kolo::dashboard
