// The file is read in pieces, and a line that is not whole yet is kept until the next call, so that
// no byte is read twice. Reading stops behind the first line that is too long: a file may have any
// size.
#include "tune/protocol/report_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/errors.h"
#include "base/files.h"

namespace kolo::tune {
namespace {

/// Invalid while the trial has not said anything.
Fd open_if_there(const std::filesystem::path& path) {
  try {
    return open_plain_file(path, O_RDONLY);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
    return {};
  }
}

void require_length(std::size_t bytes) {
  if (bytes > kLongestLine)
    throw_error(ErrorCode::invalid_argument, "a line is longer than {} bytes", kLongestLine);
}

}  // namespace

void ReportFile::read(bool trial_has_ended, const Take& take) {
  const Fd file = open_if_there(path_);
  if (!file.valid()) return;
  take_lines(take);  // those behind one that was refused
  std::array<char, 64U << 10> piece;
  for (;;) {
    const ssize_t got =
        ::pread(file.get(), piece.data(), piece.size(), static_cast<off_t>(offset_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("cannot read {}", path_.string());
    if (got == 0) break;
    partial_.erase(0, std::exchange(taken_, 0));
    searched_ = partial_.size();
    partial_.append(piece.data(), static_cast<std::size_t>(got));
    offset_ += static_cast<std::uintmax_t>(got);
    take_lines(take);
  }
  if (trial_has_ended) take_line(take, partial_.size());
}

void ReportFile::take_lines(const Take& take) {
  for (auto end = partial_.find('\n', searched_); end != std::string::npos;
       end = partial_.find('\n', searched_)) {
    searched_ = end + 1;
    take_line(take, end);
  }
  searched_ = partial_.size();
  require_length(searched_ - taken_);
}

void ReportFile::take_line(const Take& take, std::size_t end) {
  const auto line = std::string_view(partial_).substr(taken_, end - taken_);
  taken_ = std::min(end + 1, partial_.size());
  require_length(line.size());
  if (!line.empty()) take(parse_trial_line(line));
}

}  // namespace kolo::tune
