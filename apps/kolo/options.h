// Options of commands whose users type unique beginnings of them: --exec for --executable.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "settings.h"

namespace kolo::app {

/// Options and other words in any order; `--` ends the options. A - in a name is the same as _.
class Options {
 public:
  /// Throws invalid_argument: an option that is unknown, not unique, or lacks its value.
  Options(std::span<const Setting> table, const std::vector<std::string>& arguments);

  [[nodiscard]] bool has(std::string_view option) const { return values_.contains(option); }
  [[nodiscard]] std::optional<std::string> text(std::string_view option) const;  ///< the last
  [[nodiscard]] std::vector<std::string> texts(std::string_view option) const;
  [[nodiscard]] std::optional<long long> integer(std::string_view option, long long least) const;
  [[nodiscard]] std::optional<double> number(std::string_view option, double least) const;
  [[nodiscard]] const std::vector<std::string>& words() const noexcept { return words_; }
  /// Throws invalid_argument, showing `usage`, unless there are so many words.
  void expect_words(std::size_t least, std::size_t most, std::string_view usage) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> words_;
};

}  // namespace kolo::app
