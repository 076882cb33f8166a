// Which names of workflows and jobs a filter selects.
//
// A filter is a name, and selects that name alone. With *, ? or [ in it, it is a pattern as shells
// have it, and selects the names that match.
#pragma once

#include <string>
#include <string_view>

namespace kolo::jobs {

class NamePattern {
 public:
  /// "" selects every name.
  explicit NamePattern(std::string text) : text_(std::move(text)) {}

  [[nodiscard]] bool selects_all() const noexcept { return text_.empty(); }
  [[nodiscard]] bool selects(std::string_view name) const;

  /// The condition on a column, with the parameter ${place}, which bound() gives.
  [[nodiscard]] std::string condition(std::string_view database_kind, std::string_view column,
                                      int place) const;
  [[nodiscard]] std::string bound(std::string_view database_kind) const;

 private:
  [[nodiscard]] bool is_pattern() const noexcept {
    return text_.find_first_of("*?[") != std::string::npos;
  }

  std::string text_;
};

}  // namespace kolo::jobs
