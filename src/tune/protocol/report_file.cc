// The file is read in pieces, and a line that is not whole yet is kept until the next call, so that
// no byte is read twice. Reading stops behind the first line that is too long, and when much waits
// to be worked on: a file may have any size, and grow as fast as it is read.
#include "tune/protocol/report_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/errors.h"
#include "base/files.h"

namespace kolo::tune {
namespace {

/// What may be taken before let_go_on(); one line fits in any case.
constexpr std::size_t kMostAtOnce = 8U << 20;

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

ReportFile::Rest ReportFile::read(bool trial_has_ended, const Take& take) {
  if (gave_up_) return Rest::too_much;
  const Fd file = open_if_there(path_);
  std::array<char, 64U << 10> piece;
  for (;;) {
    // Those behind one that was refused, or that there was no room for, come first.
    if (!take_lines(take)) return is_too_much(file) ? Rest::too_much : Rest::more;
    if (!file.valid()) return Rest::none;
    const ssize_t got =
        ::pread(file.get(), piece.data(), piece.size(), static_cast<off_t>(offset_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("cannot read {}", path_.string());
    if (got == 0) break;
    partial_.erase(0, std::exchange(taken_, 0));
    searched_ = partial_.size();
    partial_.append(piece.data(), static_cast<std::size_t>(got));
    offset_ += static_cast<std::uintmax_t>(got);
  }
  if (trial_has_ended) take_line(take, partial_.size());
  return is_too_much(file) ? Rest::too_much : Rest::none;
}

void ReportFile::let_go_on() noexcept { at_once_ = 0; }

bool ReportFile::is_too_much(const Fd& file) {
  struct stat facts {};
  if (!file.valid() || ::fstat(file.get(), &facts) != 0) return false;
  const auto size = static_cast<std::uintmax_t>(std::max<off_t>(facts.st_size, 0));
  if (!exempt_) exempt_ = past_ == Past::any ? size : 0;
  const std::uintmax_t known = std::max(offset_, *exempt_);
  gave_up_ = size > known + kMostUnread;
  return gave_up_;
}

bool ReportFile::take_lines(const Take& take) {
  for (auto end = partial_.find('\n', searched_); end != std::string::npos;
       end = partial_.find('\n', searched_)) {
    if (at_once_ >= kMostAtOnce) return false;
    searched_ = end + 1;
    take_line(take, end);
  }
  searched_ = partial_.size();
  require_length(searched_ - taken_);
  return true;
}

void ReportFile::take_line(const Take& take, std::size_t end) {
  const auto line = std::string_view(partial_).substr(taken_, end - taken_);
  taken_ = std::min(end + 1, partial_.size());
  at_once_ += cost_of(line);
  require_length(line.size());
  if (!line.empty()) take(parse_trial_line(line));
}

}  // namespace kolo::tune
