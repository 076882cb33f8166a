// What the search decides about a report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kolo/tune/session.h"

namespace kolo::tune {

/// The decision as the journal keeps it. The first four are search::Action's; never reuse a number.
enum class Verdict : std::int64_t {
  proceed = 0,
  stop = 1,
  pause = 2,
  clone = 3,
  rule = 10,  ///< a stopping rule ended the trial; the scheduler was told, but not asked
  done = 11,  ///< the trial itself said that it is done
  full = 12,  ///< the trial has run for the longest time that the scheduler gives
};

struct Ruling {
  Verdict verdict = Verdict::proceed;
  std::string reason{};
  std::optional<std::int64_t> source{};  ///< of a clone: the trial that is copied
  std::optional<Value> config{};         ///< of a clone: the configuration from now on
  bool save = false;                     ///< a checkpoint is wanted, for other trials to start from
};

}  // namespace kolo::tune
