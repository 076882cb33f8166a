// Environment variables. Horovod's names of the same settings are understood.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace kolo {

/// The value of KOLO_<name>, else of HOROVOD_<name>; unset and empty are the same.
std::optional<std::string> setting(const char* name);

/// The variable that a setting comes from, for messages.
std::string setting_variable(const char* name);

/// As above, parsed; throws invalid_argument naming the variable and its value.
std::optional<long long> setting_integer(const char* name);
/// Not negative.
std::optional<long long> setting_count(const char* name);
std::optional<double> setting_number(const char* name);
std::optional<bool> setting_flag(const char* name);
/// Seconds. More than a year, "inf" among it, is a year, so that it can be added to a clock. What
/// is positive stays so: a part of a millisecond is one. Negative ones and "nan" are refused.
std::optional<std::chrono::milliseconds> setting_seconds(const char* name);

/// A plain variable.
std::optional<std::string> environment(const char* name);

}  // namespace kolo
