// Numbers the calls of tune::run in a process.
//
// A program that is started again as a trial makes the same calls in the same order. The calls
// before the one that the trial belongs to return the results of their studies at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace kolo::tune {

class SelfCall {
 public:
  SelfCall();
  [[nodiscard]] std::int64_t number() const noexcept { return number_; }
  /// In a trial, for a call before the one it was started for: storage and name of its study.
  [[nodiscard]] std::optional<std::pair<std::string, std::string>> past_study() const;
  void remember(const std::string& storage, const std::string& name) const;

 private:
  std::int64_t number_ = 0;
};

}  // namespace kolo::tune
