// The log of a search (kolo.log: one JSON object a line) as one document.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace kolo::hps {

struct LogEvents {
  std::vector<Json> events;          ///< objects with "event" and, if they had one, "time"
  std::vector<std::size_t> damaged;  ///< numbers of lines that could not be read, from 1
};

/// Lines torn by a crash are left out and counted. DeepHyper's logs, which have JSON after ">>>" in
/// some lines, are understood. Throws corruption when there is no event at all in a text that is
/// not empty.
LogEvents read_log(std::string_view text, std::string_view origin);

/// {"events": […], "summary": {…}}: how many of each kind, from when to when, evaluations,
/// failures, the best.
Json log_document(const LogEvents& log);

}  // namespace kolo::hps
