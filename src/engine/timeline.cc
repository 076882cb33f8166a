// An event is one line of JSON with a comma in front, so that lines of all ranks can be appended in
// any order behind the opening bracket. The file must be valid JSON at every moment: replace()
// writes a copy with the new lines and the closing bracket under another name and renames it. To
// keep that cheap, it happens when the waiting lines are an eighth of the file, or once a second
// while the file is small.
#include "engine/timeline.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "base/log.h"

namespace kolo::runtime {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

}  // namespace

void Timeline::start(int rank, std::function<void()> ship) {
  MutexLock lock(mutex_);
  rank_ = rank;
  epoch_ = Clock::now();
  lines_.clear();
  ship_ = std::move(ship);
  is_on_ = true;
}

void Timeline::stop() { is_on_ = false; }

void Timeline::span(std::string_view what, std::string_view name, Clock::time_point begin,
                    Clock::time_point end, std::size_t bytes) {
  if (!is_on()) return;
  add(what, name, begin,
      fmt::format(R"("ph":"X","dur":{:.3f},"args":{{"bytes":{}}})",
                  Microseconds(end - begin).count(), bytes));
}

void Timeline::mark(std::string_view what, std::string_view name, Clock::time_point when) {
  if (is_on()) add(what, name, when, R"("ph":"i","s":"t")");
}

void Timeline::cycle(Clock::time_point when) {
  if (is_on() && marks_cycles_.load(std::memory_order_relaxed))
    add("CYCLE_START", "cycles", when, R"("ph":"i","s":"p")");
}

void Timeline::add(std::string_view what, std::string_view name, Clock::time_point when,
                   std::string_view rest) {
  std::function<void()> ship;
  {
    MutexLock lock(mutex_);
    // One row per operation: the viewer shows processes (ranks) and their threads (names).
    const std::string quoted = json_text(Json(name));
    lines_ += fmt::format(R"(,{{"name":"{}","cat":"kolo","pid":{},"tid":{},"ts":{:.3f},{}}})"
                          "\n",
                          what, rank_, quoted, Microseconds(when - epoch_).count(), rest);
    if (lines_.size() >= kEnoughToShip) ship = ship_;
  }
  if (ship) ship();
}

std::string Timeline::take() {
  MutexLock lock(mutex_);
  return std::exchange(lines_, {});
}

TraceFile::TraceFile(const std::string& path, int ranks) : path_(path) {
  // The ranks' clocks count from the start, so the calendar's time of it is enough for all events.
  waiting_ = fmt::format(
      R"([{{"name":"start","ph":"M","pid":0,"args":{{"start_time_since_epoch_in_micros":{}}}}})"
      "\n",
      std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
  for (int rank = 0; rank < ranks; ++rank)
    waiting_ +=
        fmt::format(R"(,{{"name":"process_name","ph":"M","pid":{},"args":{{"name":"rank {}"}}}})"
                    "\n",
                    rank, rank);
  replace();
}

TraceFile::~TraceFile() {
  try {
    if (!waiting_.empty() && file_.valid()) replace();
  } catch (const Error& error) {
    log::warning("{}", error.message());
  }
}

void TraceFile::append(std::string_view lines) {
  constexpr auto kPatience = std::chrono::seconds(1);
  constexpr std::size_t kShare = 8;
  constexpr std::size_t kSmall = std::size_t{16} << 20;  // copied in a few milliseconds
  if (lines.empty() || !file_.valid()) return;
  waiting_ += lines;
  const bool is_late = size_ < kSmall && std::chrono::steady_clock::now() - replaced_ > kPatience;
  if (waiting_.size() < size_ / kShare && !is_late) return;
  try {
    replace();
  } catch (const Error& error) {
    log::warning("{}; the timeline stops here", error.message());
    file_ = Fd();
  }
}

void TraceFile::replace() {
  const std::string fresh = path_ + ".new";
  try {
    replace_by(fresh);
  } catch (...) {
    ::unlink(fresh.c_str());  // a part of it would only fill the disk further
    throw;
  }
}

void TraceFile::replace_by(const std::string& fresh) {
  Fd next(::open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!next.valid()) throw_errno("timeline: cannot create {}", fresh);
  for (loff_t from = 0; from < static_cast<loff_t>(size_);) {
    const ssize_t copied = ::copy_file_range(file_.get(), &from, next.get(), nullptr,
                                             size_ - static_cast<std::size_t>(from), 0);
    if (copied <= 0) throw_errno("timeline: cannot copy {}", path_);
  }
  write_all(next.get(), waiting_ + "]\n", fresh);
  if (::rename(fresh.c_str(), path_.c_str()) != 0)
    throw_errno("timeline: cannot replace {}", path_);
  size_ += waiting_.size();
  waiting_.clear();
  file_ = std::move(next);
  replaced_ = std::chrono::steady_clock::now();
}

}  // namespace kolo::runtime
