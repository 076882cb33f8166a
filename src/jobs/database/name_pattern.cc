#include "jobs/database/name_pattern.h"

#include <fmt/format.h>
#include <fnmatch.h>

namespace kolo::jobs {
namespace {

constexpr std::string_view kServer = "postgresql";

/// A pattern of shells as a regular expression, for a server that has no GLOB.
std::string regex_of(std::string_view pattern) {
  std::string regex = "^";
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const auto end = c == '[' ? pattern.find(']', i + 2) : std::string_view::npos;
    if (c == '*') {
      regex += ".*";
    } else if (c == '?') {
      regex += '.';
    } else if (end != std::string_view::npos) {
      std::string set(pattern.substr(i + 1, end - i - 1));
      if (set.front() == '!') set.front() = '^';
      regex += '[';
      for (const char member : set) regex += member == '\\' ? "\\\\" : std::string(1, member);
      regex += ']';
      i = end;
    } else {
      if (std::string_view("\\^$.|+(){}[]").find(c) != std::string_view::npos) regex += '\\';
      regex += c;
    }
  }
  return regex + "$";
}

}  // namespace

bool NamePattern::selects(std::string_view name) const {
  if (text_.empty()) return true;
  if (!is_pattern()) return name == text_;
  return ::fnmatch(text_.c_str(), std::string(name).c_str(), FNM_NOESCAPE) == 0;
}

std::string NamePattern::condition(std::string_view database_kind, std::string_view column,
                                   int place) const {
  const char* const matches = !is_pattern() ? "=" : database_kind == kServer ? "~" : "GLOB";
  return fmt::format("{} {} ${}", column, matches, place);
}

std::string NamePattern::bound(std::string_view database_kind) const {
  if (!is_pattern()) return text_;
  if (database_kind == kServer) return regex_of(text_);
  // GLOB writes ^ where shells write !.
  std::string glob = text_;
  for (auto at = glob.find("[!"); at != std::string::npos; at = glob.find("[!", at + 2))
    glob[at + 1] = '^';
  return glob;
}

}  // namespace kolo::jobs
