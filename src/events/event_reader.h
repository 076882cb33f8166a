// Reads TensorBoard event files, kolo's own and those of others.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "events/event_file.h"

namespace kolo::events {

/// What the event files of one folder say together.
struct RunEvents {
  /// By step: the scalars of each tag; of several at one step the last one.
  std::map<std::int64_t, std::map<std::string, double>> scalars{};
  std::vector<HParam> hparams{};
  std::optional<bool> success{};  ///< nothing: no session has ended
  double began = 0, ended = 0;    ///< seconds since 1970
};

[[nodiscard]] bool is_event_file(const std::filesystem::path& path);

/// Adds what a file says. One that ends in the middle of a record was left by a writer that was
/// killed, or is being written. Throws io, and corruption, naming the file, for what is no such
/// file.
void read_events(const std::filesystem::path& path, RunEvents& run);
/// The same of its bytes.
void parse_events(std::string_view bytes, const std::string& name, RunEvents& run);

}  // namespace kolo::events
