// What a launcher says to the database and hears from it.
#include <algorithm>

#include "base/errors.h"
#include "base/log.h"
#include "jobs/body.h"
#include "jobs/pilot.h"

namespace kolo::jobs {
namespace {

using namespace std::chrono_literals;
using Clock = Deadline::Clock;

constexpr std::size_t kLargestGroup = 512;
constexpr std::size_t kMostAhead = 512;

}  // namespace

void Pilot::database_failed(const Error& error) {
  // A busy or unreachable database is waited for; whatever was to be written stays here.
  if (error.code() != ErrorCode::unavailable) throw error;
  if (backoff_ == kFirstBackoff) log::warning("the database does not answer: {}", error.message());
  database_again_ = Deadline::after(backoff_);
  backoff_ = std::min<std::chrono::milliseconds>(backoff_ * 2, 2s);
}

void Pilot::keep_lease() {
  if (dirty_.empty())
    try_database([this] { leases_->write({}); });
  else
    last_flush_ = {};  // writing does it
}

void Pilot::take_jobs() {
  if (!look_ || stopping_ || queue_->waiting() + helpers_.size() >= ahead_) return;
  try_database([this] {
    // As many as start at once, and some ahead: more when short jobs run it dry quickly, few when
    // they are long and another launcher could have them.
    const auto now = Clock::now();
    const bool quick = now - last_take_ < 500ms;
    ahead_ = quick ? std::min(ahead_ * 2, kMostAhead) : std::max<std::size_t>(ahead_ / 2, 2);
    last_take_ = now;
    std::size_t room = 0;
    for (const auto& node : queue_->nodes().all()) room += static_cast<std::size_t>(node.cores);
    // A job of the smallest kind takes one core: there cannot be more.
    const std::size_t busy = static_cast<std::size_t>(helpers_running_) + tasks_.size();
    const std::size_t idle = busy < room ? room - busy : 0;
    const Wanted wanted{.single = static_cast<int>(std::min(idle + ahead_, 2 * kMostAhead)),
                        .several = queue_->nodes().usable() + 2,
                        .nodes = queue_->nodes().usable(),
                        .cores = cores_,
                        .gpus = static_cast<double>(gpus_),
                        .one_rank_only = options_.mode == JobMode::serial,
                        .workflow = options_.workflow};
    auto taken = leases_->take(wanted);
    // Fewer than wanted: there are no more until somebody says so.
    look_ = std::ssize(taken) >= wanted.single;
    for (auto& one : taken) {
      const JobId id = one.job.id;
      const JobState state = one.job.state;
      // An old entry is one whose end is not written yet, and cannot be taken again before.
      Held held{.job = std::move(one.job), .hold = one.hold, .written = state};
      held.need = need_of(held.job, options_.mode);
      advance(held_.insert_or_assign(id, std::move(held)).first->second);
    }
  });
}

void Pilot::flush() {
  if (dirty_.empty() || (database_again_ && !database_again_->passed())) return;
  const auto now = Clock::now();
  if (now - last_flush_ < kFlushInterval && dirty_.size() < kLargestGroup && !stopping_) return;
  std::vector<Changes::Chain> chains;
  std::vector<JobId> ids;
  for (const JobId id : dirty_) {
    const Held& held = held_.at(id);
    chains.push_back({.id = id,
                      .from = held.written,
                      .steps = held.pending,
                      .hold = held.hold,
                      .release = held.release,
                      .retries = held.retries,
                      .return_code = held.return_code});
    ids.push_back(id);
  }
  std::vector<bool> written;
  if (!try_database([&] { written = leases_->write(chains); })) return;
  last_flush_ = Clock::now();
  dirty_.clear();
  if (leases_->made_ready()) look_ = true;
  for (std::size_t i = 0; i < ids.size(); ++i) settle(held_.at(ids[i]), written[i]);
}

void Pilot::settle(Held& held, bool written) {
  const JobId id = held.job.id;
  if (written) {
    if (!held.pending.empty()) held.written = held.pending.back().state;
    held.pending.clear();
    held.retries = 0;
    held.return_code.reset();
    if (held.release) held_.erase(id);
    return;
  }
  if (held.killed) {  // not even that is ours any more
    held_.erase(id);
    return;
  }
  // Killed by the user: its task ends, and then it is let go.
  held.killed = true;
  held.release = false;
  held.pending.clear();
  if (held.task != 0)
    end_task(held);
  else
    forget_killed(held);
}

void Pilot::look_for_kills() {
  try_database([this] {
    for (const JobId id : leases_->killed()) {
      const auto found = held_.find(id);
      if (found == held_.end() || found->second.killed) continue;
      dirty_.erase(id);
      settle(found->second, false);
    }
    look_for_kills_ = false;
  });
}

}  // namespace kolo::jobs
