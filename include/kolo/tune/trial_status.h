// The status of a trial, in Ray Tune's words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kolo::tune {

/// The numbers are persistent: databases hold them. A trial that was told to stop is terminated
/// too; TrialInfo::why says the reason.
enum class TrialStatus : std::int64_t {
  pending = 0,
  running = 1,
  paused = 2,
  terminated = 3,
  error = 4
};
inline constexpr std::size_t kTrialStatuses = 5;

/// "PENDING", "RUNNING", "PAUSED", "TERMINATED", "ERROR".
std::string_view to_string(TrialStatus status) noexcept;

}  // namespace kolo::tune
