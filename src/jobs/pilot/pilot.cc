#include "jobs/pilot/pilot.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "base/json.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "exec/environment.h"
#include "jobs/database/body.h"

namespace kolo::jobs {
namespace {

using namespace std::chrono_literals;
using Clock = Deadline::Clock;

/// For the database to answer once more, when all else has ended.
constexpr auto kLastPatience = 60s;

Deadline after_seconds(double seconds) {
  return Deadline::after(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
}

}  // namespace

Pilot::Pilot(JobDatabase& jobs, const LauncherOptions& options, Deadline end, int signals,
             LauncherSummary& summary)
    : jobs_(jobs),
      options_(options),
      end_(end),
      signals_(signals),
      summary_(summary),
      lease_due_(after_seconds(options.lease_seconds / 4)),
      lost_due_(Deadline::after(0s)) {}

LauncherFacts Pilot::facts() const {
  return {.database = jobs_.folder().string(),
          .nodes = static_cast<int>(options_.nodes.size()),
          .mode = options_.mode,
          .runner = options_.runner,
          .grace = options_.grace};
}

/// Starts the workers and waits for their first words.
void Pilot::connect_nodes() {
  head_ = std::make_unique<WorkerLink>("head", options_.head_command);
  for (const auto& node : options_.nodes)
    links_.push_back(std::make_unique<WorkerLink>(node.name, node.command));
  std::vector<Node> nodes;
  for (const auto& node : options_.nodes) nodes.push_back({node.name, node.cores, node.gpus});

  // Workers at the end of ssh get this environment; others have it.
  const std::string environment =
      frame(WorkerMessage::environment, encode(exec::forwardable(current_environment())));
  const Deadline deadline = Deadline::after(options_.start_timeout);
  std::vector<bool> answered(links_.size(), false);
  const auto waits = [&](std::size_t i) { return !answered[i] && !links_[i]->closed(); };
  for (;;) {
    std::vector<pollfd> polls;
    for (std::size_t i = 0; i < links_.size(); ++i)
      polls.push_back({waits(i) ? links_[i]->read_fd() : -1, POLLIN, 0});
    const bool any = std::any_of(polls.begin(), polls.end(), [](auto& p) { return p.fd >= 0; });
    if (!any || deadline.passed()) break;
    ::poll(polls.data(), polls.size(), deadline.poll_timeout_ms());
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (polls[i].revents == 0) continue;
      for (const auto& message : links_[i]->receive()) {
        if (message.type != static_cast<std::uint8_t>(WorkerMessage::hello)) continue;
        answered[i] = true;
        if (nodes[i].cores == 0) nodes[i].cores = decode_hello(message.payload).processors;
        if (options_.nodes[i].forward_environment) links_[i]->send(environment);
        links_[i]->flush();
      }
    }
  }
  queue_ = std::make_unique<RunQueue>(nodes, options_.mode);
  int good = 0;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (answered[i]) {
      ++good;
      cores_ = std::max(cores_, nodes[i].cores);
      gpus_ = std::max(gpus_, nodes[i].gpus);
      continue;
    }
    log::warning("node {} is not used: {}", links_[i]->node(),
                 links_[i]->closed() ? links_[i]->reason_of_end() : "its worker does not answer");
    queue_->nodes().lose(static_cast<int>(i));
  }
  if (good == 0) throw_error(ErrorCode::unavailable, "no node can be used (see above)");
}

Pilot::Outcome Pilot::run() {
  connect_nodes();
  Json about = {{"nodes", queue_->nodes().usable()},
                {"cores", cores_},
                {"gpus", gpus_},
                {"mode", to_string(options_.mode)},
                {"workflow", options_.workflow},
                {"runner", options_.runner}};
  // The first contact: a database that does not answer now is an error at once.
  leases_.emplace(jobs_, options_.lease_seconds, about.dump());
  waker_ = std::make_unique<Waker>(jobs_);
  log::info("launcher {}: {} nodes, {} mode", leases_->id(), queue_->nodes().usable(),
            to_string(options_.mode));
  idle_since_ = Clock::now();
  try {
    while (!is_over()) {
      wait_for_events();
      check_times();
      if (look_for_kills_) look_for_kills();
      start_helpers();
      take_jobs();
      start_runs();
      flush();
      for (const auto& link : links_) link->flush();
      head_->flush();
    }
  } catch (const Error& error) {
    // Only Leases throws this: the fence.
    if (error.code() != ErrorCode::failed_precondition) throw;
    log::warning("{}", error.message());
    return Outcome::fenced;
  }
  leases_->end();
  return Outcome::done;
}

bool Pilot::is_over() {
  if (!held_.empty()) {
    idle_since_ = Clock::now();
    return false;
  }
  if (stopping_) return true;
  if (options_.persistent || database_again_ || wants_single() || wants_several()) return false;
  if (Clock::now() - idle_since_ < std::chrono::duration<double>(options_.idle_seconds))
    return false;
  bool others = true;
  try_database([&] { others = leases_->others_work(options_.workflow); });
  if (others) idle_since_ = Clock::now();
  return !others;
}

int Pilot::poll_timeout_ms() const {
  Deadline next = std::min({end_, lease_due_, lost_due_}, [](const Deadline& a, const Deadline& b) {
    return a.when() < b.when();
  });
  const auto sooner = [&next](Deadline other) {
    if (other.when() < next.when()) next = other;
  };
  if (!dirty_.empty())
    sooner(database_again_ ? *database_again_ : Deadline::at(last_flush_ + kFlushInterval));
  if (wants_single() || wants_several()) {
    if (!database_again_) return 0;  // more could be taken at once
    sooner(*database_again_);
  }
  if (held_.empty() && !options_.persistent)
    sooner(Deadline::at(idle_since_ + std::chrono::ceil<std::chrono::milliseconds>(
                                          std::chrono::duration<double>(options_.idle_seconds))));
  if (next_limit_) sooner(*next_limit_);
  if (give_up_) sooner(*give_up_);
  return next.poll_timeout_ms();
}

void Pilot::wait_for_events() {
  std::vector<pollfd> polls = {{signals_, POLLIN, 0}, {waker_->fd(), POLLIN, 0}};
  std::vector<WorkerLink*> open;
  for (const auto& link : links_) open.push_back(link.get());
  open.push_back(head_.get());
  for (const WorkerLink* link : open) {
    polls.push_back({link->read_fd(), POLLIN, 0});
    polls.push_back({link->error_fd(), POLLIN, 0});
    polls.push_back({link->write_fd(), POLLOUT, 0});
  }
  ::poll(polls.data(), polls.size(), poll_timeout_ms());
  if (polls[0].revents != 0) take_signals();
  if (polls[1].revents != 0) {
    waker_->clear();
    look_again();
    look_for_kills_ = true;
  }
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (polls[3 * i + 3].revents != 0) open[i]->read_errors();
    if (polls[3 * i + 2].revents != 0) handle_frames(*open[i]);
  }
}

void Pilot::take_signals() {
  signalfd_siginfo info{};
  while (::read(signals_, &info, sizeof info) > 0)
    stop(fmt::format("the launcher was told to end (signal {})", info.ssi_signo));
}

void Pilot::handle_frames(WorkerLink& link) {
  for (const auto& message : link.receive()) {
    switch (static_cast<WorkerMessage>(message.type)) {
      case WorkerMessage::ended: {
        const TaskEnd end = decode_end(message.payload);
        task_ended(end.task, end.status, end.tail);
        break;
      }
      case WorkerMessage::failed: {
        const TaskFailure failure = decode_failure(message.payload);
        task_ended(failure.task, std::nullopt, failure.why);
        break;
      }
      default: break;  // the hello of the head; ends of lines
    }
  }
  if (link.closed()) lose(link);
}

void Pilot::lose(WorkerLink& link) {
  const std::string why = fmt::format("node {} was lost: {}", link.node(), link.reason_of_end());
  log::warning("{}", why);
  for (std::size_t i = 0; i < links_.size(); ++i)
    if (links_[i].get() == &link) queue_->nodes().lose(static_cast<int>(i));
  std::vector<std::uint64_t> lost;
  for (const auto& [task, id] : tasks_)
    if (held_.at(id).where == &link) lost.push_back(task);
  for (const std::uint64_t task : lost) {
    Held& held = held_.at(tasks_.at(task));
    tasks_.erase(task);
    held.task = 0;
    held.where = nullptr;
    held.limit.reset();
    const bool ran = std::exchange(held.phase, Phase::waiting) == Phase::running;
    if (ran)
      queue_->ended(held.job.id);
    else
      --helpers_running_;
    if (held.killed) {
      forget_killed(held);
    } else if (ran) {
      step(held, JobState::restart_ready, why);
      advance(held);
    } else {
      give_back(held);  // its script runs again, here or elsewhere
    }
  }
  // This machine's own helper is needed as long as the launcher is.
  if (&link == head_.get()) head_ = std::make_unique<WorkerLink>("head", options_.head_command);
  if (queue_->nodes().usable() == 0) {
    last_flush_ = {};
    flush();
    throw_error(ErrorCode::unavailable, "no node is left; the last one: {}", why);
  }
}

void Pilot::stop(const std::string& why) {
  if (stopping_) return;
  stopping_ = true;
  why_stopping_ = why;
  give_up_ = Deadline::after(options_.grace + kLastPatience);
  log::info("{}", why);
  std::vector<JobId> ids;
  for (const auto& [id, held] : held_) ids.push_back(id);
  for (const JobId id : ids) {
    Held& held = held_.at(id);
    if (held.phase == Phase::ended) continue;
    if (held.task != 0)
      end_task(held);
    else
      give_back(held);
  }
  helpers_.clear();
}

void Pilot::check_times() {
  if (end_.passed()) stop("the launcher's time is over");
  if (give_up_ && give_up_->passed())
    throw_error(ErrorCode::unavailable,
                "what became of {} jobs could not be written; they will run again", held_.size());
  if (lease_due_.passed()) {
    lease_due_ = after_seconds(options_.lease_seconds / 4);
    keep_lease();
  }
  if (lost_due_.passed()) {
    lost_due_ = after_seconds(options_.lease_seconds / 2);
    look_again();  // should a notification have been missed
    look_for_kills_ = true;
    shed();
    try_database([this] {
      if (const auto freed = leases_->free_lost(); freed > 0)
        log::info("{} jobs of lost launchers are free again", freed);
    });
  }
  if (!next_limit_ || !next_limit_->passed()) return;
  next_limit_.reset();
  for (auto& [id, held] : held_) {
    if (!held.limit) continue;
    if (held.limit->passed()) {
      held.limit.reset();
      end_task(held);
    } else if (!next_limit_ || held.limit->when() < next_limit_->when()) {
      next_limit_ = held.limit;
    }
  }
}

}  // namespace kolo::jobs
