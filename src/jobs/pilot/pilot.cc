// The turn of a pilot, and what is due when. The states of a job are in pilot_steps.cc, runs and
// hooks in pilot_tasks.cc, and what is written and read in pilot_database.cc. next_turn() is the
// earliest moment at which any of them has something to do; what needs the database waits for the
// next attempt while that does not answer.
#include "jobs/pilot/pilot.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/errors.h"
#include "base/json.h"
#include "base/log.h"
#include "base/plural.h"

namespace kolo::jobs {
namespace {

using namespace std::chrono_literals;

/// Between looks while a launcher on this machine is gone and its tasks may not be.
constexpr std::chrono::seconds kLookForTheDead{1};
/// For the database to answer once more, when the launcher was told to end and its tasks have.
constexpr auto kLastPatience = 5s;

std::string about_launcher(const LauncherOptions& options, int nodes, int cores, int gpus) {
  return json_text(Json{{"nodes", nodes},
                        {"cores", cores},
                        {"gpus", gpus},
                        {"mode", to_string(options.mode)},
                        {"workflow", options.workflow},
                        {"runner", options.runner},
                        {"processes", process_space()},
                        {"grace_seconds", std::chrono::duration<double>(options.grace).count()}});
}

/// False only if it is known not to be: a file system may be away for a while.
bool is_there(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder, error) || error;
}

int most(const std::vector<Node>& nodes, int Node::*what) {
  int value = 0;
  for (const auto& node : nodes)
    if (node.answers) value = std::max(value, node.*what);
  return value;
}

RunQueue queue_on(const std::vector<Node>& nodes, JobMode mode) {
  RunQueue queue(nodes, mode);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (!nodes[i].answers) queue.nodes().lose(static_cast<int>(i));
  return queue;
}

}  // namespace

Pilot::Pilot(JobDatabase& jobs, const LauncherOptions& options, const std::vector<Node>& nodes,
             TaskHost& tasks, const Clock& clock, Clock::Time end, LauncherSummary& summary)
    : jobs_(jobs),
      options_(options),
      host_(tasks),
      clock_(clock),
      end_(end),
      summary_(summary),
      queue_(queue_on(nodes, options.mode)),
      cores_(most(nodes, &Node::cores)),
      gpus_(most(nodes, &Node::gpus)),
      leases_(jobs, options.lease_seconds,
              about_launcher(options, queue_.nodes().usable(), cores_, gpus_)),
      database_("the job database", clock),
      idle_since_(clock.now()),
      lease_due_(clock.now() + clock_duration(options.lease_seconds / 4)),
      lost_due_(clock.now()) {
  log::info("launcher {}: {}, {} mode", leases_.id(), counted(queue_.nodes().usable(), "node"),
            to_string(options_.mode));
}

LauncherFacts Pilot::facts() const {
  return {.database = jobs_.folder().string(),
          .nodes = static_cast<int>(options_.nodes.size()),
          .mode = options_.mode,
          .runner = options_.runner,
          .grace = options_.grace};
}

void Pilot::turn() {
  check_times();
  if (look_at_held_) look_at_held();
  start_hooks();
  start_runs();  // with what is at hand: a node that got free does not wait for the database
  take_jobs();
  start_runs();
  write_steps();
}

bool Pilot::is_over() {
  if (!held_.empty()) {
    idle_since_ = clock_.now();
    return false;
  }
  if (stopping_) return true;
  if (options_.persistent || database_.failing() || wants_single() || wants_several()) return false;
  if (clock_.now() - idle_since_ < clock_duration(options_.idle_seconds)) return false;
  bool others = true;
  try_database([&] { others = leases_.others_work(options_.workflow); });
  if (others)
    idle_since_ = clock_.now();
  else
    note_left();
  return !others;
}

Clock::Time Pilot::next_turn() const {
  Clock::Time next = std::min({end_, lease_due_, lost_due_});
  const auto not_after = [&next](Clock::Time other) { next = std::min(next, other); };
  if (!unwritten_.empty())
    not_after(database_.failing() ? database_.next() : last_write_ + kWriteInterval);
  // More could be taken at once.
  if (wants_single() || wants_several())
    not_after(database_.failing() ? database_.next() : clock_.now());
  if (!hooks_.empty() && hooks_running_ < options_.hooks_at_once)
    not_after(database_.failing() ? database_.next() : clock_.now());
  if (held_.empty() && !options_.persistent)
    not_after(idle_since_ + clock_duration(options_.idle_seconds));
  if (next_limit_) not_after(*next_limit_);
  if (give_up_) not_after(*give_up_);
  return next;
}

void Pilot::notified() {
  look_again();
  look_at_held_ = true;
}

void Pilot::node_lost(int node, const std::string& why) {
  log::warning("{}", why);
  if (node != kOwnMachine) queue_.nodes().lose(node);
  std::vector<JobId> ids;
  for (const auto& [task, id] : tasks_)
    if (held_.at(id).node == node) ids.push_back(id);
  for (const JobId id : ids) {
    HeldJob& held = held_.at(id);
    const bool ran = forget_task(held) == Phase::running;
    if (held.out_of_hands) {
      let_go(held);
    } else if (ran) {
      step(held, JobState::restart_ready, why);
      advance(held);
    } else {
      give_back(held);  // its script runs again, here or elsewhere
    }
  }
  if (queue_.nodes().usable() > 0) return;
  write_now();
  throw_error(ErrorCode::unavailable, "no node is left; the last one to go: {}", why);
}

void Pilot::stop(const std::string& why) {
  if (stopping_) return;
  stopping_ = true;
  why_stopping_ = why;
  give_up_.reset();
  log::info("{}", why);
  std::vector<JobId> ids;
  for (const auto& [id, held] : held_) ids.push_back(id);
  for (const JobId id : ids) {
    HeldJob& held = held_.at(id);
    if (held.phase == Phase::judging) {
      // A batch system that ends an allocation tells all its processes, and the task was faster:
      // it is the launcher's time that was over.
      held.told_to_end = true;
      judge_run(held);
    } else if (held.task != 0) {
      end_task(held);
    } else if (held.phase != Phase::ended) {
      give_back(held);
    }
  }
  hooks_.clear();
}

void Pilot::stop_at_once(const std::string& why) {
  stop(why);
  for (const auto& [task, id] : tasks_) host_.kill(held_.at(id).node, task);
}

void Pilot::check_times() {
  const auto now = clock_.now();
  if (now >= end_) stop("the launcher's time is over");
  check_database();
  if (now >= lease_due_) {
    lease_due_ = now + clock_duration(options_.lease_seconds / 4);
    keep_lease();
  }
  if (now >= lost_due_) {
    lost_due_ = now + clock_duration(options_.lease_seconds / 2);
    if (!is_there(jobs_.folder()))
      throw_error(ErrorCode::not_found, "the folder of the job database, {}, is gone",
                  jobs_.folder().string());
    notified();  // should a notification have been missed
    share_reserve();
    try_database([this] {
      if (const auto freed = leases_.free_lost(); freed > 0)
        log::info("{} jobs of lost launchers can be taken again", freed);
    });
    if (leases_.waits_for_tasks()) lost_due_ = std::min(lost_due_, now + kLookForTheDead);
  }
  if (next_limit_ && now >= *next_limit_) check_limits();
}

void Pilot::check_database() {
  if (!database_.failing() || !tasks_.empty()) return give_up_.reset();
  const auto now = clock_.now();
  if (!give_up_)
    give_up_ = now + (stopping_ ? Clock::Duration(kLastPatience) : options_.database_patience);
  if (now < *give_up_) return;
  if (try_database([this] { leases_.write({}); })) return give_up_.reset();
  const auto waited = stopping_ ? std::chrono::seconds(kLastPatience) : options_.database_patience;
  throw_error(ErrorCode::unavailable, "{}the job database has not answered for {} s: {}; {}",
              stopping_ ? why_stopping_ + ", and " : "", waited.count(), database_.reason(),
              held_.empty() ? "no job is lost"
                            : fmt::format("what has become of {} could not be written, and will be "
                                          "done again",
                                          counted(held_.size(), "job")));
}

void Pilot::finish() {
  log::info("launcher {} ends: {} finished, {} failed, {}", leases_.id(),
            counted(summary_.finished, "job"), summary_.failed, counted(summary_.runs, "run"));
  try {
    leases_.end();
  } catch (const Error& error) {
    if (!Retry::may_pass(error)) throw;
    log::warning(
        "the launcher could not sign off, and counts as lost when its lease of {:.5g} s "
        "is over: {}",
        options_.lease_seconds, error.message());
  }
}

void Pilot::set_limit(HeldJob& held, Clock::Duration time) {
  held.limit = clock_.now() + time;
  if (!next_limit_ || *held.limit < *next_limit_) next_limit_ = held.limit;
}

void Pilot::check_limits() {
  next_limit_.reset();
  const auto now = clock_.now();
  for (auto& [id, held] : held_) {
    if (!held.limit) continue;
    if (now < *held.limit) {
      if (!next_limit_ || *held.limit < *next_limit_) next_limit_ = held.limit;
      continue;
    }
    held.limit.reset();
    if (held.phase == Phase::judging)
      judge_run(held);
    else
      end_task(held);
  }
}

}  // namespace kolo::jobs
