#include "engine/timeline.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/errors.h"
#include "base/json.h"
#include "base/log.h"

namespace kolo::runtime {

void Timeline::start(int rank, std::function<void()> ship) {
  std::lock_guard lock(mutex_);
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
  using Microseconds = std::chrono::duration<double, std::micro>;
  std::function<void()> ship;
  {
    std::lock_guard lock(mutex_);
    // One row per operation: the viewer shows processes (ranks) and their threads (names).
    const std::string quoted = Json(name).dump(-1, ' ', false, Json::error_handler_t::replace);
    lines_ += fmt::format(
        R"(,{{"name":"{}","cat":"kolo","ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},)"
        R"("args":{{"bytes":{}}}}})"
        "\n",
        what, rank_, quoted, Microseconds(begin - epoch_).count(),
        Microseconds(end - begin).count(), bytes);
    if (lines_.size() >= kEnoughToShip) ship = ship_;
  }
  if (ship) ship();
}

std::string Timeline::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(lines_, {});
}

TraceFile::TraceFile(const std::string& path, int ranks)
    : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (!file_.valid()) throw_errno("timeline: cannot create {}", path);
  std::string text = "[";
  for (int rank = 0; rank < ranks; ++rank)
    text +=
        fmt::format(R"({}{{"name":"process_name","ph":"M","pid":{},"args":{{"name":"rank {}"}}}})"
                    "\n",
                    rank == 0 ? "" : ",", rank, rank);
  end_ = static_cast<std::int64_t>(text.size());
  text += "]\n";
  if (::pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    throw_errno("timeline: cannot write {}", path);
}

void TraceFile::append(std::string_view lines) {
  if (lines.empty() || !file_.valid()) return;
  const std::string text = std::string(lines) + "]\n";
  const ssize_t written = ::pwrite(file_.get(), text.data(), text.size(), end_);
  if (written != static_cast<ssize_t>(text.size())) {
    log::warning("timeline: cannot write {}; it ends here", path_);
    [[maybe_unused]] const auto restored = ::pwrite(file_.get(), "]\n", 2, end_);
    [[maybe_unused]] const auto cut = ::ftruncate(file_.get(), end_ + 2);
    file_ = Fd();
    return;
  }
  end_ += static_cast<std::int64_t>(lines.size());
}

}  // namespace kolo::runtime
