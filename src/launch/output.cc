// A chunk of output goes to the rank's file unchanged, and then through the splitter to the sink.
// The splitter searches only the new chunk for the end of a line, or a long line in many chunks
// would cost quadratic time. The sink asks poll() before each write, and writes to a pipe at most
// what poll() guarantees. The streams are not set to O_NONBLOCK, since that would affect all
// processes that share them. A stream whose reader has gone is dropped with its lines, and a file
// that cannot be written is closed, because the job must not end for the sake of its output.
#include "launch/output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/errors.h"
#include "base/files.h"

namespace kolo::launch {

void LineSplitter::feed(std::string_view bytes, const Emit& emit) {
  std::string joined;
  std::string_view text = bytes;
  if (!partial_.empty()) {
    // A long line comes in many pieces: look for its end in the new one only, unless the old one
    // ends with a \r that could be the first half of an end.
    if (partial_.back() != '\r' && bytes.find_first_of("\r\n") == std::string_view::npos &&
        partial_.size() + bytes.size() < kLongestLine) {
      partial_.append(bytes);
      return;
    }
    joined = std::move(partial_);
    partial_.clear();
    joined.append(bytes);
    text = joined;
  }
  while (!text.empty()) {
    const auto at = text.find_first_of("\r\n");
    // A \r at the very end waits for what follows it.
    if (at == std::string_view::npos || (text[at] == '\r' && at + 1 == text.size())) break;
    const std::size_t length = text.substr(at, 2) == "\r\n" ? 2 : 1;
    emit(text.substr(0, at), text.substr(at, length));
    text.remove_prefix(at + length);
  }
  if (text.size() >= kLongestLine) {
    emit(text, "\n");
    text = {};
  }
  partial_ = text;
}

void LineSplitter::finish(const Emit& emit) {
  if (partial_.empty()) return;
  std::string_view text = partial_;
  if (text.back() == '\r')
    emit(text.substr(0, text.size() - 1), "\r");
  else
    emit(text, "\n");
  partial_.clear();
}

void LineSink::add(int fd, std::string text) {
  if (broken_[fd]) return;
  pending_ += text.size();
  // Lines for the same stream are joined: one system call writes many of them.
  if (!lines_.empty() && lines_.back().first == fd && lines_.back().second.size() < kBlock)
    lines_.back().second.append(text);
  else
    lines_.emplace_back(fd, std::move(text));
}

int LineSink::waiting_for() const noexcept { return lines_.empty() ? -1 : lines_.front().first; }

void LineSink::write_some() {
  while (!lines_.empty()) {
    auto& [fd, line] = lines_.front();
    pollfd poll{fd, POLLOUT, 0};
    if (::poll(&poll, 1, 0) <= 0) return;
    // A pipe that poll() calls writable takes PIPE_BUF bytes without blocking, not more. A regular
    // file takes all.
    constexpr std::size_t kSure = 4096;
    struct stat info {};
    const bool is_file = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    const std::size_t left = line.size() - written_;
    const ssize_t got = ::write(fd, line.data() + written_, is_file ? left : std::min(left, kSure));
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got < 0) {
      // Whoever read it has gone. The job goes on; its output has nowhere to go.
      const int lost = fd;
      broken_[lost] = true;
      std::erase_if(lines_, [&](const auto& entry) { return entry.first == lost; });
      written_ = 0;
      pending_ = 0;
      for (const auto& entry : lines_) pending_ += entry.second.size();
      continue;
    }
    written_ += static_cast<std::size_t>(got);
    pending_ -= static_cast<std::size_t>(got);
    if (written_ == line.size()) {
      lines_.pop_front();
      written_ = 0;
    }
  }
}

void LineSink::write_to_the_end() {
  while (!lines_.empty()) {
    pollfd poll{waiting_for(), POLLOUT, 0};
    ::poll(&poll, 1, -1);
    write_some();
  }
}

RankOutputs::RankOutputs(OutputOptions options, int ranks, LineSink& sink)
    : options_(std::move(options)),
      width_(static_cast<int>(std::to_string(std::max(ranks - 1, 0)).size())),
      sink_(sink) {
  for (int rank = 0; rank < ranks; ++rank) add(rank);
}

void RankOutputs::add(int rank) {
  Channel& out = channels_[{rank, Stream::out}];
  Channel& err = channels_[{rank, Stream::err}];
  if (options_.directory.empty()) return;
  const auto directory = options_.directory / fmt::format("rank.{:0{}}", rank, width_);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    throw_error(ErrorCode::io, "cannot create {}: {}", directory.string(), error.message());
  for (auto [channel, name] : {std::pair{&out, "stdout"}, std::pair{&err, "stderr"}}) {
    const auto path = directory / name;
    channel->file = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!channel->file.valid()) throw_errno("cannot create {}", path.string());
  }
}

std::string RankOutputs::prefix(int rank, Stream stream) const {
  std::string time;
  if (options_.timestamps) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    tm parts{};
    ::localtime_r(&now.tv_sec, &parts);
    char text[32];
    ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    time = fmt::format("{}.{:03} ", text, now.tv_nsec / 1'000'000);
  }
  return fmt::format("{}[{}]<{}>:", time, rank, stream == Stream::out ? "stdout" : "stderr");
}

LineSplitter::Emit RankOutputs::emitter(int rank, Stream stream) {
  return [this, rank, stream](std::string_view line, std::string_view end) {
    std::string text = prefix(rank, stream);
    text.append(line).append(end);
    sink_.add(stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO, std::move(text));
  };
}

void RankOutputs::end(int rank, Stream stream, Channel& channel) {
  if (std::exchange(channel.ended, true)) return;
  channel.splitter.finish(emitter(rank, stream));
  channel.file.reset();
}

void RankOutputs::feed(const exec::Output& output) {
  const int rank = static_cast<int>(output.id);
  auto found = channels_.find({rank, output.stream});
  if (found == channels_.end())
    throw_error(ErrorCode::corruption, "there is no rank {}, yet output of it came", output.id);
  Channel& channel = found->second;
  if (output.bytes.empty()) return end(rank, output.stream, channel);
  if (channel.file.valid()) {
    try {
      write_all(channel.file.get(), output.bytes, fmt::format("the output file of rank {}", rank));
    } catch (const Error& error) {
      channel.file.reset();  // said once; the job is worth more than its log
      sink_.add(STDERR_FILENO, fmt::format("kolo run: {}\n", error.message()));
    }
  }
  channel.splitter.feed(output.bytes, emitter(rank, output.stream));
}

void RankOutputs::finish() {
  for (auto& [key, channel] : channels_) end(key.first, key.second, channel);
}

}  // namespace kolo::launch
