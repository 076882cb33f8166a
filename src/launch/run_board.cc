#include "launch/run_board.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/host.h"
#include "base/log.h"
#include "base/utf8.h"

namespace kolo::launch {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kLockFile = "lock";
constexpr const char* kStatusFile = "status.json";
constexpr auto kWriteEvery = 500ms;
/// Ten seconds of each rank.
constexpr std::size_t kKeptSamples = 100;
constexpr std::size_t kKeptEvents = 50;

/// Throws failed_precondition if the user has no place of their own.
fs::path runs_folder() { return state_folder() / "runs"; }

/// Without the wait for the disk: after a crash of the machine nothing of a run is left.
void replace_file(const fs::path& path, const std::string& content) {
  const fs::path fresh = path.string() + ".new";
  const Fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kPrivateFile));
  if (!file.valid()) throw_errno("cannot open {}", fresh.string());
  write_all(file.get(), content, fresh.string());
  fs::rename(fresh, path);
}

/// Nothing while another process holds the lock.
Fd try_lock(const fs::path& folder) {
  Fd lock(::open((folder / kLockFile).c_str(), O_RDWR | O_CLOEXEC));
  if (lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) lock.reset();
  return lock;
}

/// What was left by a launcher that was killed.
void remove_left_folder(const fs::path& folder, const Json& status) {
  if (status.value("host", "") != host_name()) return;
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

double per_second(std::uint64_t now, std::uint64_t before, std::chrono::nanoseconds time) {
  return now < before || time.count() <= 0
             ? 0
             : static_cast<double>(now - before) / std::chrono::duration<double>(time).count();
}

}  // namespace

RunBoard::RunBoard(const std::vector<std::string>& argv, const fs::path& directory,
                   bool is_elastic) {
  const MutexLock guard(mutex_);
  try {
    static_cast<void>(runs_under_way());  // removes what others have left
    const double started = system_clock().date();
    const std::string id = fmt::format("{}-{:.0f}", ::getpid(), started * 1e6);
    const fs::path folder = runs_folder() / id;
    make_private_directory(runs_folder());
    make_private_directory(folder);
    lock_ = Fd(::open((folder / kLockFile).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kPrivateFile));
    if (!lock_.valid() || ::flock(lock_.get(), LOCK_EX) != 0)
      throw_errno("cannot lock {}", folder.string());
    folder_ = folder;
    about_ = {{"id", id},
              {"host", host_name()},
              {"pid", ::getpid()},
              {"program", plain_utf8(fmt::format("{}", fmt::join(argv, " ")))},
              {"directory", plain_utf8(directory.string())},
              {"elastic", is_elastic},
              {"started", started}};
    write(/*at_once=*/true);
  } catch (const std::exception& error) {
    log::debug("this run is not shown by kolo top and kolo dashboard: {}", error.what());
  }
}

RunBoard::~RunBoard() {
  const MutexLock guard(mutex_);
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

void RunBoard::set_ranks(const std::vector<RankPlace>& places, int generation) {
  const MutexLock guard(mutex_);
  generation_ = generation;
  ranks_.clear();
  for (const auto& place : places) ranks_.push_back({place});
  write(/*at_once=*/true);
}

void RunBoard::ended(int worker, const std::string& how) {
  const MutexLock guard(mutex_);
  for (auto& rank : ranks_)
    if (rank.place.worker == worker) {
      rank.state = how;
      rank.steps_per_s = rank.operations_per_s = 0;
      rank.samples.clear();
    }
  write(/*at_once=*/true);
}

void RunBoard::heard(int number, const comm::ActivityReport& report) {
  const MutexLock guard(mutex_);
  const auto rank = std::find_if(ranks_.begin(), ranks_.end(),
                                 [&](const Rank& one) { return one.place.rank == number; });
  if (rank == ranks_.end()) return;
  const Time now = std::chrono::steady_clock::now();
  if (rank->heard != Time{}) {
    rank->steps_per_s = per_second(report.steps, rank->last.steps, now - rank->heard);
    rank->operations_per_s =
        per_second(report.operations, rank->last.operations, now - rank->heard);
  }
  rank->last = report;
  rank->heard = now;
  rank->samples += report.samples;
  if (rank->samples.size() > kKeptSamples)
    rank->samples.erase(0, rank->samples.size() - kKeptSamples);
  write(/*at_once=*/false);
}

void RunBoard::note(const std::string& event) {
  const MutexLock guard(mutex_);
  events_.push_back({{"time", system_clock().date()}, {"text", plain_utf8(event)}});
  if (events_.size() > kKeptEvents) events_.erase(events_.begin());
  write(/*at_once=*/true);
}

void RunBoard::write(bool at_once) {
  const Time now = std::chrono::steady_clock::now();
  if (folder_.empty() || (!at_once && now - written_ < kWriteEvery)) return;
  written_ = now;
  Json status = about_;
  status["generation"] = generation_;
  status["events"] = events_;
  status["ranks"] = Json::array();
  for (const auto& rank : ranks_)
    status["ranks"].push_back({{"rank", rank.place.rank},
                               {"worker", rank.place.worker},
                               {"host", rank.place.host},
                               {"state", rank.state},
                               {"steps", rank.last.steps},
                               {"operations", rank.last.operations},
                               {"steps_per_s", rank.steps_per_s},
                               {"operations_per_s", rank.operations_per_s},
                               {"samples", rank.samples}});
  try {
    replace_file(folder_ / kStatusFile, json_text(status) + "\n");
  } catch (const std::exception& error) {
    log::debug("the state of this run was not written: {}", error.what());
  }
}

std::vector<Json> runs_under_way() {
  std::vector<Json> runs;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(runs_folder(), none)) {
    // Without a status the launcher is just beginning, or ending.
    std::optional<Json> status;
    try {
      status = try_parse_json(read_file(entry.path() / kStatusFile));
    } catch (const Error&) {
      continue;
    }
    if (!status || !status->is_object()) continue;
    if (try_lock(entry.path()).valid())
      remove_left_folder(entry.path(), *status);
    else
      runs.push_back(*std::move(status));
  }
  std::sort(runs.begin(), runs.end(), [](const Json& a, const Json& b) {
    return a.value("started", 0.0) < b.value("started", 0.0);
  });
  return runs;
}

std::string runs_version() {
  std::string version;
  try {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(runs_folder(), none)) {
      const auto changed = fs::last_write_time(entry.path() / kStatusFile, none);
      version += fmt::format("{} {} ", entry.path().filename().string(),
                             changed.time_since_epoch().count());
    }
  } catch (const Error&) {  // no folder of the user's own is known
  }
  return version;
}

Waiting who_waits(const Json& run) {
  constexpr std::string_view kHalfASecond = "wwwww";
  Waiting found;
  for (const auto& rank : run.value("ranks", Json::array())) {
    if (rank.value("state", "") != "running") continue;
    const std::string samples = rank.value("samples", "");
    if (samples.empty()) continue;
    (samples.ends_with(kHalfASecond) ? found.waiting : found.awaited)
        .push_back(rank.value("rank", 0));
  }
  if (found.waiting.empty() || found.awaited.empty()) return {};
  return found;
}

}  // namespace kolo::launch
