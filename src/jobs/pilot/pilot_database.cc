// What a launcher says to the database and hears from it.
#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "base/errors.h"
#include "base/log.h"
#include "jobs/database/body.h"
#include "jobs/pilot/pilot.h"

namespace kolo::jobs {
namespace {

using namespace std::chrono_literals;
using Clock = Deadline::Clock;

constexpr std::size_t kLargestGroup = 512;
constexpr std::size_t kLeastAhead = 2, kMostAhead = 512;
constexpr std::size_t kSeveralAhead = 4;

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

bool Pilot::wants_single() const {
  const std::size_t waiting = queue_->waiting() - queue_->waiting_several() + helpers_.size();
  return look_single_ && !stopping_ && waiting < ahead_;
}

bool Pilot::wants_several() const {
  return look_several_ && !stopping_ && queue_->waiting_several() < kSeveralAhead;
}

void Pilot::take_jobs() {
  const bool single = wants_single(), several = wants_several();
  if (!single && !several) return;
  try_database([&] {
    if (take_in_doubt_) {
      for (auto& one : leases_->taken())
        if (!held_.contains(one.job.id)) adopt(std::move(one));
      take_in_doubt_ = false;
      return;  // and again, with what there is now
    }
    // Some ahead of what runs: more when short jobs run it dry quickly, few when they are long and
    // another launcher could have them.
    const auto now = Clock::now();
    if (now - last_take_ > 500ms)
      ahead_ = std::max(ahead_ / 2, kLeastAhead);
    else if (single && queue_->waiting() == queue_->waiting_several())
      ahead_ = std::min(ahead_ * 2, kMostAhead);
    last_take_ = now;
    const Wanted wanted{.single = single ? static_cast<int>(ahead_) : 0,
                        .several = several ? static_cast<int>(kSeveralAhead) : 0,
                        .nodes = queue_->nodes().usable(),
                        .cores = cores_,
                        .gpus = static_cast<double>(gpus_),
                        .one_rank_only = options_.mode == JobMode::serial,
                        .workflow = options_.workflow};
    take_in_doubt_ = true;
    auto taken = leases_->take(wanted);
    take_in_doubt_ = false;
    const auto large = std::count_if(taken.begin(), taken.end(),
                                     [](const Taken& one) { return one.job.num_nodes > 1; });
    const auto small = std::ssize(taken) - large;
    // Fewer than wanted: there are no more until somebody says so.
    if (single) look_single_ = small >= wanted.single;
    if (several) look_several_ = large >= wanted.several;
    for (auto& one : taken) adopt(std::move(one));
  });
}

void Pilot::adopt(Taken taken) {
  const JobId id = taken.job.id;
  const JobState state = taken.job.state;
  Held held{.job = std::move(taken.job), .hold = taken.hold, .written = state};
  held.need = need_of(held.job, options_.mode);
  advance(held_.insert_or_assign(id, std::move(held)).first->second);
}

void Pilot::shed() {
  // Jobs that have waited here while another launcher may be idle.
  if (queue_->waiting() <= kLeastAhead) return;
  try_database([this] {
    if (launchers(jobs_, true).size() < 2) return;
    for (const JobId id : queue_->last(queue_->waiting() - kLeastAhead)) give_back(held_.at(id));
    ahead_ = kLeastAhead;
  });
}

void Pilot::flush() {
  if (dirty_.empty() || (database_again_ && !database_again_->passed())) return;
  const auto now = Clock::now();
  if (now - last_flush_ < kFlushInterval && dirty_.size() < kLargestGroup && !stopping_) return;
  std::vector<Changes::Chain> chains;
  std::vector<JobId> ids;
  for (const JobId id : dirty_) {
    Held& held = held_.at(id);
    if (!held.doubt) held.doubt = Doubt{held.pending.size(), held.retries, held.release};
    chains.push_back({.id = id,
                      .from = held.written,
                      .steps = std::span<const Step>(held.pending).first(held.doubt->steps),
                      .hold = held.hold,
                      .release = held.doubt->release,
                      .retries = held.doubt->retries,
                      .return_code = held.return_code});
    ids.push_back(id);
  }
  std::vector<bool> written;
  if (!try_database([&] { written = leases_->write(chains); })) return;
  last_flush_ = Clock::now();
  dirty_.clear();
  if (leases_->made_ready()) look_again();
  for (std::size_t i = 0; i < ids.size(); ++i) settle(held_.at(ids[i]), written[i]);
}

void Pilot::settle(Held& held, bool written) {
  const JobId id = held.job.id;
  const Doubt done = std::exchange(held.doubt, std::nullopt).value_or(Doubt{});
  if (written) {
    if (done.release) {
      if (held.killed && !is_end(held.written)) look_again();  // it waits to be run as it is now
      queue_->remove(id);
      held_.erase(id);
      return;
    }
    const auto end = held.pending.begin() + static_cast<std::ptrdiff_t>(done.steps);
    if (done.steps > 0) held.written = std::prev(end)->state;
    held.pending.erase(held.pending.begin(), end);
    held.retries -= done.retries;
    if (held.pending.empty() && !held.release)
      held.return_code.reset();
    else
      dirty_.insert(id);  // what has happened since
    return;
  }
  held.pending.clear();
  held.retries = 0;
  held.return_code.reset();
  held.release = false;
  std::optional<JobState> state;
  if (!try_database([&] { state = leases_->state_of(id, held.hold); })) {
    dirty_.insert(id);  // and again
    return;
  }
  if (held.killed && !state) {  // not even its lease is ours any more
    held_.erase(id);
    return;
  }
  if (state) held.written = *state;
  if (state && !is_end(*state) && held.task == 0 && !held.killed) {
    // A user has moved it on.
    held.job.state = *state;
    held.phase = Phase::waiting;
    queue_->remove(id);
    return advance(held);
  }
  // Killed by the user, somebody else's, or moved on while its task ran: that ends, and then the
  // job is let go as it is.
  held.killed = true;
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
