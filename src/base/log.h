// Log lines on standard error, with the rank in front.
//
// KOLO_LOG_LEVEL (or HOROVOD_LOG_LEVEL): trace, debug, info, warning (default), error, fatal.
// KOLO_LOG_HIDE_TIME (or HOROVOD_LOG_HIDE_TIME) = 1 leaves the time out.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace kolo::log {

enum class Level : int { trace, debug, info, warning, error, fatal };

/// Throws invalid_argument, listing the known names.
Level parse_level(std::string_view name);

void set_level(Level level) noexcept;
[[nodiscard]] bool enabled(Level level) noexcept;

/// Lines get "[rank] " in front from now on; negative = none.
void set_rank(int rank);

void write(Level level, std::string_view message);

template <class... Args>
void line(Level level, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(level)) write(level, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  line(Level::debug, format, std::forward<Args>(args)...);
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  line(Level::info, format, std::forward<Args>(args)...);
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  line(Level::warning, format, std::forward<Args>(args)...);
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  line(Level::error, format, std::forward<Args>(args)...);
}

}  // namespace kolo::log
