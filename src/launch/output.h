// The ranks' output: whole lines with a prefix on the launcher's own streams, and raw files.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "exec/task.h"

namespace kolo::launch {

/// Cuts a stream into lines. A line ends with \n, \r or \r\n, which stays as it is; the last one
/// may lack its end and gets \n.
class LineSplitter {
 public:
  /// Called with a line and its end.
  using Emit = std::function<void(std::string_view line, std::string_view end)>;

  void feed(std::string_view bytes, const Emit& emit);
  void finish(const Emit& emit);

 private:
  /// A line longer than this is given in pieces, or one rank could take all memory.
  static constexpr std::size_t kLongestLine = 64U << 20;
  std::string partial_;
};

/// Writes complete lines to the launcher's standard output and error in the order in which they
/// came, without ever blocking: one line is written to its end before the next begins, so lines
/// are not torn even where both streams are one terminal or pipe.
class LineSink {
 public:
  void add(int fd, std::string text);

  /// The descriptor to poll for writing, or -1 if nothing waits.
  [[nodiscard]] int waiting_for() const noexcept;
  /// Writes what can be written now.
  void write_some();
  /// Writes all, waiting as long as the reader needs.
  void write_to_the_end();
  [[nodiscard]] std::size_t pending_bytes() const noexcept { return pending_; }

 private:
  static constexpr std::size_t kBlock = 64U << 10;
  std::deque<std::pair<int, std::string>> lines_;  // blocks of whole lines
  std::size_t written_ = 0;                        // of the first block
  std::size_t pending_ = 0;
  bool broken_[3] = {};  // by descriptor: its reader has gone
};

struct OutputOptions {
  bool timestamps = false;
  std::filesystem::path directory;  ///< "" = no files
};

using exec::Stream;

class RankOutputs {
 public:
  /// Opens `<directory>/rank.<padded>/stdout|stderr` for all ranks. Throws io.
  RankOutputs(OutputOptions options, int ranks, LineSink& sink);
  /// One more, of a job that grows.
  void add(int rank);

  /// The id of a rank's task is the rank.
  void feed(const exec::Output& output);
  /// Gives out last lines that have no end.
  void finish();

 private:
  struct Channel {
    LineSplitter splitter;
    Fd file;
    bool ended = false;
  };
  [[nodiscard]] std::string prefix(int rank, Stream stream) const;
  LineSplitter::Emit emitter(int rank, Stream stream);
  void end(int rank, Stream stream, Channel& channel);

  OutputOptions options_;
  int width_;  // of a rank's number in the names of directories
  LineSink& sink_;
  std::map<std::pair<int, Stream>, Channel> channels_;
};

}  // namespace kolo::launch
