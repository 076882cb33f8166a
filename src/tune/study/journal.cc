#include "tune/study/journal.h"

#include <utility>

namespace kolo::tune {
namespace {

/// Others count a controller as gone that has been silent for store::kLeaseSeconds.
constexpr auto kHeartbeat = std::chrono::seconds(1);

}  // namespace

Journal::Journal(store::StudyStore& store, store::StudyRecord study, const Clock& clock)
    : store_(store),
      clock_(clock),
      study_(std::move(study)),
      seq_(study_.seq),
      logged_(study_.logged),
      elapsed_before_(study_.elapsed) {}

double Journal::elapsed() const {
  return elapsed_before_ + std::chrono::duration<double>(clock_.now() - began_).count();
}

void Journal::event(std::string kind, std::optional<std::int64_t> trial, std::string detail) {
  batch_.events.push_back({next_seq(), clock_.date(), trial, std::move(kind), std::move(detail)});
}

store::ReportRecord& Journal::report(std::int64_t trial) {
  store::ReportRecord& report = batch_.reports.emplace_back();
  report.seq = next_seq();
  report.trial = trial;
  report.time = clock_.date();
  return report;
}

std::int64_t Journal::checkpoint(std::int64_t trial, std::int64_t iteration,
                                 const std::filesystem::path& path) {
  const std::int64_t seq = next_seq();
  batch_.checkpoints.push_back({trial, seq, iteration, path.string(), clock_.date()});
  return seq;
}

void Journal::checkpoint_removed(const Checkpoint& checkpoint) {
  batch_.removed_checkpoints.push_back({checkpoint.path.string(), checkpoint.seq});
}

void Journal::request_done(std::int64_t number) { batch_.done_requests.push_back(number); }

void Journal::commit(Trials& trials,
                     const std::function<void(const std::function<void()>&)>& write) {
  const bool quiet = batch_.empty() && !trials.any_changed();
  if (quiet && clock_.now() < next_heartbeat()) return;
  batch_.from_seq = study_.seq;
  batch_.to_seq = seq_;
  batch_.elapsed = elapsed();
  batch_.logged = logged_;
  batch_.trials = trials.take_changed();
  write([this] {
    batch_.now = store_.lease_date();
    store_.write(study_.id, batch_);
  });
  study_.seq = seq_;
  batch_ = {};
  last_write_ = clock_.now();
}

Clock::Time Journal::next_heartbeat() const noexcept { return last_write_ + kHeartbeat; }

}  // namespace kolo::tune
