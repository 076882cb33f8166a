// What a pilot writes to the database, and what it learns from it.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/plural.h"
#include "jobs/database/body.h"
#include "jobs/database/explain.h"
#include "jobs/pilot/pilot.h"

namespace kolo::jobs {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLargestGroup = 512;
/// Jobs to have at hand beyond those that run: of one node, and of several.
constexpr std::size_t kLeastReserve = 2, kMostReserve = 512;
constexpr std::size_t kReserveOfSeveral = 4;

}  // namespace

void Pilot::keep_lease() {
  if (unwritten_.empty())
    try_database([this] { leases_.write({}); });
  else
    last_write_ = {};  // writing keeps it
}

bool Pilot::wants_single() const {
  const std::size_t waiting = queue_.waiting() - queue_.waiting_several() + hooks_.size();
  return look_single_ && !stopping_ && waiting < reserve_;
}

bool Pilot::wants_several() const {
  return look_several_ && !stopping_ && queue_.waiting_several() < kReserveOfSeveral;
}

void Pilot::take_jobs() {
  const bool single = wants_single(), several = wants_several();
  if (!single && !several) return;
  try_database([&] {
    if (take_unconfirmed_) {
      for (auto& one : leases_.taken())
        if (!held_.contains(one.job.id)) hold(std::move(one));
      take_unconfirmed_ = false;
      return;  // and again, with what there is now
    }
    // The reserve grows when short jobs use it up quickly, and shrinks when they are long and
    // another launcher could have them.
    const auto now = clock_.now();
    if (now - last_take_ > 500ms)
      reserve_ = std::max(reserve_ / 2, kLeastReserve);
    else if (single && queue_.waiting() == queue_.waiting_several())
      reserve_ = std::min(reserve_ * 2, kMostReserve);
    last_take_ = now;
    const Wanted wanted{.single = single ? static_cast<int>(reserve_) : 0,
                        .several = several ? static_cast<int>(kReserveOfSeveral) : 0,
                        .nodes = queue_.nodes().usable(),
                        .cores = cores_,
                        .gpus = static_cast<double>(gpus_),
                        .one_rank_only = options_.mode == JobMode::serial,
                        .workflow = options_.workflow};
    take_unconfirmed_ = true;
    auto taken = leases_.take(wanted);
    take_unconfirmed_ = false;
    const auto large = std::count_if(taken.begin(), taken.end(),
                                     [](const Taken& one) { return one.job.num_nodes > 1; });
    const auto small = std::ssize(taken) - large;
    // Fewer than wanted: there are no more until somebody says so.
    if (single) look_single_ = small >= wanted.single;
    if (several) look_several_ = large >= wanted.several;
    if (!taken.empty()) log::info("{} taken", counted(std::ssize(taken), "job"));
    for (auto& one : taken) hold(std::move(one));
  });
}

void Pilot::hold(Taken taken) {
  const JobId id = taken.job.id;
  const JobState state = taken.job.state;
  HeldJob held{.job = std::move(taken.job), .hold = taken.hold, .written = state};
  held.need = need_of(held.job, options_.mode);
  advance(held_.insert_or_assign(id, std::move(held)).first->second);
}

void Pilot::share_reserve() {
  if (queue_.waiting() <= kLeastReserve) return;
  try_database([this] {
    if (launchers(jobs_, true).size() < 2) return;
    for (const JobId id : queue_.last(queue_.waiting() - kLeastReserve)) give_back(held_.at(id));
    reserve_ = kLeastReserve;
  });
}

void Pilot::write_now() {
  last_write_ = {};
  write_steps();
}

void Pilot::write_steps() {
  if (unwritten_.empty() || database_.waits()) return;
  if (clock_.now() - last_write_ < kWriteInterval && unwritten_.size() < kLargestGroup &&
      !stopping_)
    return;
  std::vector<Changes::Chain> chains;
  std::vector<JobId> ids;
  for (const JobId id : unwritten_) {
    HeldJob& held = held_.at(id);
    if (!held.unconfirmed)
      held.unconfirmed = UnconfirmedWrite{held.pending.size(), held.retries, held.release};
    chains.push_back({.id = id,
                      .from = held.written,
                      .steps = std::span<const Step>(held.pending).first(held.unconfirmed->steps),
                      .hold = held.hold,
                      .release = held.unconfirmed->release,
                      .retries = held.unconfirmed->retries,
                      .return_code = held.return_code});
    ids.push_back(id);
  }
  std::vector<bool> written;
  if (!try_database([&] { written = leases_.write(chains); })) return;
  last_write_ = clock_.now();
  unwritten_.clear();
  if (leases_.made_ready()) look_again();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    HeldJob& held = held_.at(ids[i]);
    if (written[i])
      write_accepted(held);
    else
      write_refused(held);
  }
}

void Pilot::write_accepted(HeldJob& held) {
  const JobId id = held.job.id;
  const UnconfirmedWrite done = std::exchange(held.unconfirmed, std::nullopt).value();
  if (done.release) {
    if (held.out_of_hands && !is_end(held.written)) look_again();  // it waits to be run as it is
    queue_.remove(id);
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
    unwritten_.insert(id);  // what has happened since
}

void Pilot::write_refused(HeldJob& held) {
  const JobId id = held.job.id;
  held.unconfirmed.reset();
  held.pending.clear();
  held.retries = 0;
  held.return_code.reset();
  held.release = false;
  std::optional<JobState> state;
  if (!try_database([&] { state = leases_.state_of(id, held.hold); })) {
    unwritten_.insert(id);  // and again
    return;
  }
  if (held.out_of_hands && !state) {  // not even its lease is this launcher's any more
    held_.erase(id);
    return;
  }
  if (state) held.written = *state;
  if (state && !is_end(*state) && held.task == 0 && !held.out_of_hands) {
    // A user has moved it on.
    held.job.state = *state;
    held.phase = Phase::waiting;
    held.judged.reset();
    held.limit.reset();
    queue_.remove(id);
    return advance(held);
  }
  // Killed by the user, somebody else's, or moved on while its task ran: the task is ended, and
  // then the job is let go as it is.
  held.out_of_hands = true;
  if (held.task != 0)
    end_task(held);
  else
    let_go(held);
}

void Pilot::look_at_held() {
  try_database([this] {
    for (const JobId id : leases_.killed()) {
      const auto found = held_.find(id);
      if (found == held_.end() || found->second.out_of_hands) continue;
      unwritten_.erase(id);
      write_refused(found->second);
    }
    for (const JobId id : leases_.yielding()) {
      const auto found = held_.find(id);
      if (found == held_.end() || found->second.job.yields) continue;
      HeldJob& held = found->second;
      held.job.yields = true;
      held.need = need_of(held.job, options_.mode);
      queue_.shrink(id, held.need);
    }
    look_at_held_ = false;
  });
}

void Pilot::note_left() {
  constexpr std::int64_t kMost = 1000;
  try_database([this] {
    summary_.left = 0;
    for (const JobState state :
         {JobState::ready, JobState::staged_in, JobState::preprocessed, JobState::restart_ready})
      for (const Job& job :
           jobs_.find({.state = state, .workflow = options_.workflow, .limit = kMost})) {
        if (job.launcher != 0) continue;
        const Prospect prospect = prospect_of(jobs_, job);
        if (prospect.able > 0) continue;
        if (summary_.left++ == 0)
          summary_.obstacle =
              fmt::format("job {} ({}): {}", raw(job.id), job.name, prospect.obstacle);
        log::info("job {} ({}) stays behind: {}", raw(job.id), job.name, prospect.obstacle);
      }
  });
}

}  // namespace kolo::jobs
