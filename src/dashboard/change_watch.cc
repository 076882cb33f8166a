#include "dashboard/change_watch.h"

#include <map>
#include <memory>

#include "base/errors.h"
#include "base/json.h"
#include "base/log.h"
#include "base/signals_blocked.h"
#include "launch/run_board.h"
#include "store/study_store.h"

namespace kolo::dashboard {
namespace {

using namespace std::chrono_literals;

constexpr auto kStudiesEvery = 20ms;
constexpr auto kJobsEvery = 500ms;
constexpr auto kRunsEvery = 250ms;
constexpr auto kAfterAnError = 1s;

}  // namespace

ChangeWatch::ChangeWatch(std::string storage_url, JobPages& jobs, ChangeFeed& feed)
    : url_(std::move(storage_url)), jobs_(jobs), feed_(feed) {
  const SignalsBlocked signals_blocked;
  studies_thread_ = std::thread([this] { watch_studies(); });
  runs_thread_ = std::thread([this] { watch_runs(); });
  if (jobs_.present()) jobs_thread_ = std::thread([this] { watch_jobs(); });
}

ChangeWatch::~ChangeWatch() {
  {
    const MutexLock lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  studies_thread_.join();
  runs_thread_.join();
  if (jobs_thread_.joinable()) jobs_thread_.join();
}

bool ChangeWatch::sleep(std::chrono::milliseconds duration) {
  MutexLock lock(mutex_);
  return !ended_.wait_for(lock, duration, [this]() KOLO_REQUIRES(mutex_) { return over_; });
}

void ChangeWatch::watch_studies() {
  std::unique_ptr<store::Database> database;
  std::unique_ptr<store::StudyStore> store;
  std::map<std::string, store::StudyMark> seen;
  bool first = true;
  for (auto pause = std::chrono::milliseconds(kStudiesEvery);; pause = kStudiesEvery) {
    try {
      if (!store) {
        database = store::open_database(url_, {.create = false});
        store = std::make_unique<store::StudyStore>(*database);
      }
      std::map<std::string, store::StudyMark> now;
      for (auto& mark : store->marks()) now.emplace(mark.name, mark);
      for (const auto& [name, mark] : now)
        if (const auto old = seen.find(name); !first && (old == seen.end() || old->second != mark))
          feed_.publish(json_text({{"study", name}, {"seq", mark.seq}}));
      for (const auto& [name, mark] : seen)
        if (!now.contains(name)) feed_.publish(json_text({{"study", name}, {"gone", true}}));
      seen = std::move(now);
      first = false;
    } catch (const Error& error) {
      // There is no database before the first study; a server may be away for a while.
      log::debug("dashboard: {}", error.what());
      store.reset();
      database.reset();
      first = first && error.code() != ErrorCode::not_found;
      pause = kAfterAnError;
    }
    if (!sleep(pause)) return;
  }
}

void ChangeWatch::watch_jobs() {
  std::string seen;
  for (auto pause = std::chrono::milliseconds(kJobsEvery);; pause = kJobsEvery) {
    try {
      if (std::string now = jobs_.version(); now != seen) {
        if (!seen.empty()) feed_.publish(json_text({{"jobs", true}}));
        seen = std::move(now);
      }
    } catch (const Error& error) {
      log::debug("dashboard: {}", error.what());
      pause = kAfterAnError;
    }
    if (!sleep(pause)) return;
  }
}

void ChangeWatch::watch_runs() {
  std::string seen = launch::runs_version();
  while (sleep(kRunsEvery)) {
    std::string now = launch::runs_version();
    if (now == seen) continue;
    feed_.publish(json_text({{"runs", true}}));
    seen = std::move(now);
  }
}

}  // namespace kolo::dashboard
