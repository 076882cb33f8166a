// TensorBoard event files: scalars over steps, and hyperparameters with the session they belong to.
//
//   EventFile file(directory);
//   file.scalar("loss", 0.31, epoch, now);
//
// A file is a sequence of records: u64 length, masked CRC-32C of the length, the message, masked
// CRC-32C of the message; all little-endian. The first one names the version.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/fd.h"

namespace kolo::events {

/// A hyperparameter as TensorBoard knows it.
using HParam = std::pair<std::string, std::variant<bool, double, std::string>>;

/// Not thread-safe. What is written reaches the file when 64 KiB have gathered, at flush() and at
/// the end.
class EventFile {
 public:
  /// Makes `directory`/events.out.tfevents.<wall_time>.<host>.<pid>.<n>, a new file each time:
  /// readers take all files of a directory together. Throws io.
  explicit EventFile(const std::filesystem::path& directory, double wall_time);
  /// Flushes as well as it can.
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  void scalar(std::string_view tag, double value, std::int64_t step, double wall_time);
  /// All of one step, in one record.
  void scalars(std::span<const std::pair<std::string, double>> values, std::int64_t step,
               double wall_time);

  /// What the run was started with, and which scalars judge it.
  void hparams(std::span<const HParam> values, std::span<const std::string> metrics,
               double wall_time);
  void end_of_session(bool success, double wall_time);

  /// Throws io; what could not be written is kept for the next time.
  void flush();

 private:
  void record(std::string_view message);

  std::filesystem::path path_;
  Fd file_;
  std::string pending_;
};

}  // namespace kolo::events
