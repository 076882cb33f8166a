// A run begins when all its hosts have answered; in a cluster, when all its slots are granted. In a
// cluster one run asks for slots at a time, since each answer changes what is free for the next.
// The first failure is kept as the reason and ends the other ranks, whose failures are its
// consequences. The loss of a host, or of the custodian of this one, replaces that reason, because
// it explains what the ranks have said before. A run is forgotten, and its places go back, only
// when nothing of any rank can be left; places given back earlier would let two trials run on the
// same slots.
#include "tune/executor/trial_tasks.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/errors.h"
#include "base/files.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/subprocess.h"
#include "launch/environment.h"
#include "launch/meeting_place.h"
#include "tune/output/trial_log.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

/// The controller kills a run when its grace time is over, and says so. The custodian does it only
/// where the controller did not.
constexpr std::chrono::milliseconds kAfterTheController{2000};

bool was_terminated(int status) {
  return WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT);
}

}  // namespace

fs::path TrialTasks::file_of_rank(const fs::path& path, std::size_t rank) {
  return rank == 0 ? path : fs::path(path.string() + "." + std::to_string(rank));
}

TrialTasks::Run* TrialTasks::find(RunId id) {
  const auto found = runs_.find(id.trial);
  return found != runs_.end() && found->second.end.id == id ? &found->second : nullptr;
}

void TrialTasks::start(RunProcess given) {
  const std::int64_t trial = given.id.trial;
  Run& run =
      runs_.insert_or_assign(trial, Run{.process = std::move(given), .end = {}}).first->second;
  const RunProcess& process = run.process;
  run.end.id = process.id;
  try {
    for (const auto& placement : process.placements) {
      TrialHost& host = hosts_.at(placement.host);
      if (!hosts_.are_cluster()) hosts_.open(host);
      for (int i = 0; i < (process.is_elastic ? 0 : placement.ranks); ++i)
        run.ranks.push_back(
            {.host = &host, .err = RunOutput(file_of_rank(process.err, run.ranks.size()))});
    }
    if (hosts_.are_cluster() ? has_slots(run) : hosts_are_ready(run))
      begin(run);
    else
      waiting_.insert(trial);
  } catch (...) {
    hosts_.give_back(process.placements);
    runs_.erase(trial);
    throw;
  }
}

bool TrialTasks::hosts_are_ready(const Run& run) {
  const auto& placements = run.process.placements;
  return std::all_of(placements.begin(), placements.end(),
                     [this](const auto& one) { return hosts_.at(one.host).is_ready(); });
}

/// As hosts_are_ready(), but elsewhere if one of them was lost. A run that begins here has a
/// descriptor to inherit, and stays; workers of an elastic one may begin anywhere.
bool TrialTasks::finds_hosts(Run& run) {
  auto& placements = run.process.placements;
  const bool any_lost = std::any_of(placements.begin(), placements.end(),
                                    [this](const auto& one) { return !hosts_.at(one.host).link; });
  if (any_lost && run.process.is_elastic) {
    const int ranks = ranks_in(placements);
    hosts_.give_back(std::exchange(placements, {}));
    for (int i = 0; i < ranks; ++i) hosts_.add_rank(placements);
  } else if (any_lost && !placements.front().is_local) {
    const int nodes = static_cast<int>(placements.size()), ranks = placements.front().ranks;
    hosts_.give_back(placements);
    put(run, hosts_.take(nodes, ranks));
  }
  return hosts_are_ready(run);
}

void TrialTasks::put(Run& run, std::vector<launch::Placement> placements) {
  const auto ranks = static_cast<std::size_t>(placements.front().ranks);
  for (std::size_t i = 0; i < run.ranks.size(); ++i)
    run.ranks[i].host = &hosts_.at(placements[i / ranks].host);
  run.process.placements = std::move(placements);
}

bool TrialTasks::has_slots(Run& run) {
  using State = cluster::Gang::State;
  if (run.slots && run.slots->state() != State::refused)
    return run.slots->state() == State::granted;
  run.slots.reset();
  // One after the other: each answer changes what the next one can hope for.
  const bool others_ask = std::any_of(waiting_.begin(), waiting_.end(), [&](std::int64_t trial) {
    const auto& slots = runs_.at(trial).slots;
    return slots && slots->state() == State::asking;
  });
  if (others_ask) return false;
  auto& placements = run.process.placements;
  const int nodes = static_cast<int>(placements.size()), ranks = placements.front().ranks;
  auto found = hosts_.take_free(nodes, ranks);
  if (found.empty()) return false;
  hosts_.give_back(placements);
  put(run, std::move(found));
  run.slots = hosts_.reserve(placements);
  return false;
}

void TrialTasks::begin(Run& run) {
  const RunProcess& process = run.process;
  const auto& placements = process.placements;
  run.is_begun = true;
  if (process.is_elastic) return begin_ring(run);
  const Secret secret = Secret::random();
  std::vector<launch::HostRoute> routes;
  for (const auto& placement : placements) {
    const auto& hello = hosts_.at(placement.host).hello;
    routes.push_back({placement.host, !placement.is_local, hello ? hello->from : ""});
  }
  auto meeting = launch::open_meeting_place(static_cast<int>(run.ranks.size()), secret, routes, "");
  run.server = std::move(meeting.server);
  const Fd passed = std::move(run.process.descriptor);  // closed here when the custodian has it
  std::size_t number = 0;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    for (int local = 0; local < placements[i].ranks; ++local, ++number) {
      exec::Task task = task_of(run, number, placements[i]);
      if (number == 0 && passed.valid())
        task.descriptors = {{passed.get(), process.descriptor_variable}};
      if (process.is_ring) {
        const auto variables =
            launch::rank_variables(placements, placements[i], local, meeting.of_host[i]);
        task.environment.insert(task.environment.end(), variables.begin(), variables.end());
        task.share = {local, placements[i].ranks};
        task.tell_exit = true;
        if (run.server) task.secret = secret.bytes();
      }
      run.ranks[number].host->link->start(task);
    }
  }
}

/// What every process of a run has.
exec::Task TrialTasks::task_of(Run& run, std::size_t number, const launch::Placement& placement) {
  const RunProcess& process = run.process;
  exec::Task task;
  task.id = next_task_++;
  task.argv = process.argv;
  task.environment = process.environment;
  task.directory = process.directory;
  task.streams = {!placement.is_local, file_of_rank(process.out, number),
                  file_of_rank(process.err, number)};
  task.grace = {process.grace + kAfterTheController, {}, {}};
  if (run.slots) task.reservation = run.slots->id();
  run.ranks[number].task = task.id;
  tasks_[task.id] = {process.id.trial, number};
  return task;
}

void TrialTasks::stop(RunId id) {
  if (Run* run = find(id)) end_ranks(*run, /*at_once=*/false);
}

void TrialTasks::kill(RunId id) {
  if (Run* run = find(id)) end_ranks(*run, /*at_once=*/true);
}

void TrialTasks::end_ranks(Run& run, bool at_once) {
  if (!run.is_begun) run.is_cancelled = true;
  if (run.leader) run.leader->stop();
  for (auto& rank : run.ranks) {
    if (!run.is_begun)
      rank.is_open = false;
    else if (rank.is_open)
      at_once ? rank.host->link->kill(rank.task) : rank.host->link->end(rank.task);
  }
}

std::vector<RunEnd> TrialTasks::receive() {
  for (auto& host : hosts_.all())
    if (host.link) receive_from(host);
  hosts_.keep_up();
  hear_rings();
  begin_waiting();
  return std::exchange(ended_, {});
}

void TrialTasks::begin_waiting() {
  for (const auto trial : std::set(waiting_)) {
    Run& run = runs_.at(trial);
    try {
      const bool is_ready = hosts_.are_cluster() ? has_slots(run) : finds_hosts(run);
      if (is_ready && !run.is_cancelled) begin(run);
    } catch (const Error& error) {
      fail(run, 0, error.message());
      run.is_cancelled = true;
      for (auto& rank : run.ranks) rank.is_open = false;
    }
    if (run.is_begun) waiting_.erase(trial);
    forget_if_over(trial);
  }
}

void TrialTasks::receive_from(TrialHost& host) {
  try {
    for (const auto& event : hosts_.receive(host)) {
      handle(event);
      for (const auto trial : waiting_)
        if (auto& slots = runs_.at(trial).slots) slots->take(host.link.get(), event);
    }
    if (const auto why = hosts_.loss_of(host)) lose(host, *why);
  } catch (const Error& error) {  // it does not speak the protocol
    host.link->kill_command();
    lose(host, error.message());
  }
}

void TrialTasks::handle(const exec::Event& event) {
  const auto* output = std::get_if<exec::Output>(&event);
  const auto* exited = std::get_if<exec::Exited>(&event);
  const auto* ended = std::get_if<exec::TaskEnd>(&event);
  if (output == nullptr && exited == nullptr && ended == nullptr) return;
  const auto place = tasks_.find(output != nullptr   ? output->id
                                 : exited != nullptr ? exited->id
                                                     : ended->id);
  if (place == tasks_.end()) return;
  const auto [trial, number] = place->second;
  Run& run = runs_.at(trial);
  if (output != nullptr) {
    write_output(run.ranks[number], run.process, number, *output);
  } else if (exited != nullptr) {
    rank_exited(run, number, exited->status);
  } else {
    tasks_.erase(place);
    rank_ended(run, number, *ended);
    forget_if_over(trial);
  }
}

/// What cannot be written is lost, as on a disk that is full, or where the trial has put a pipe in
/// place of the file.
void TrialTasks::write_output(Rank& rank, const RunProcess& process, std::size_t number,
                              const exec::Output& output) {
  const bool is_out = output.stream == exec::Stream::out;
  Fd& file = is_out ? rank.out_file : rank.err_file;
  try {
    if (!file.valid())
      file = open_trial_file(file_of_rank(is_out ? process.out : process.err, number), 0666);
    write_all(file.get(), output.bytes, "what a trial prints");
  } catch (const Error&) {
  }
}

void TrialTasks::rank_exited(Run& run, std::size_t rank, int status) {
  if (run.leader) return lose_worker(run, rank, exit_code_of(status), describe_wait_status(status));
  if (run.server) run.server->announce(comm::departure_by_status(static_cast<int>(rank), status));
  if (status != 0)
    fail(run, rank, fmt::format("rank {} {}", rank, describe_wait_status(status)),
         was_terminated(status));
}

void TrialTasks::rank_ended(Run& run, std::size_t rank, const exec::TaskEnd& end) {
  run.ranks[rank].is_open = false;
  if (run.leader) {
    lose_worker(run, rank, 1, "could not be started: " + end.error);
    return note_shrunk(run);
  }
  if (!end.error.empty())
    fail(run, rank, end.error);
  else if (!run.process.is_ring && end.status != 0)
    fail(run, rank, "the program " + describe_wait_status(end.status), was_terminated(end.status));
}

void TrialTasks::lose(TrialHost& host, const std::string& reason) {
  const std::string error = host.is_local
                                ? "the process that starts and watches trials was lost: " + reason
                                : fmt::format("host {} was lost: {}", host.name, reason);
  // A host that does not come back is told once.
  if (host.is_local || host.hello) log::warning("{}", error);
  std::vector<std::int64_t> trials;
  for (auto& [trial, run] : runs_) {
    if (run.slots) run.slots->lose(host.link.get());
    if (!run.is_begun) continue;  // it waits for this host to come back, or gets places elsewhere
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < run.ranks.size(); ++i) {
      Rank& rank = run.ranks[i];
      if (rank.host != &host || !rank.is_open) continue;
      rank.is_open = false;
      tasks_.erase(rank.task);
      if (run.leader) {
        lose_worker(run, i, 1, "was lost with its host: " + reason);
        note_shrunk(run);
        trials.push_back(trial);
        run.end.was_cut_off = run.leader->is_over();
        continue;
      }
      if (run.server)
        run.server->announce({static_cast<int>(i), error, comm::DepartureKind::failed});
      if (!first) first = i;
    }
    if (!first) continue;
    // Whatever the other ranks have said, it was this.
    run.end.was_cut_off = true;
    run.end.error.clear();
    fail(run, *first, error);
    trials.push_back(trial);
  }
  for (const auto trial : trials) forget_if_over(trial);
  hosts_.lose(host);
}

/// The first failure is the reason; those that follow are consequences.
void TrialTasks::fail(Run& run, std::size_t rank, const std::string& error, bool was_terminated) {
  if (!run.end.error.empty()) return;
  run.end.error = error;
  run.end.was_terminated = was_terminated;
  if (rank < run.ranks.size()) run.end.said = run.ranks[rank].err;
  for (std::size_t i = 0; i < run.ranks.size(); ++i) {
    Rank& other = run.ranks[i];
    if (!other.is_open || i == rank) continue;
    if (other.task == 0)
      other.is_open = false;
    else
      other.host->link->end(other.task);
  }
}

void TrialTasks::forget_if_over(std::int64_t trial) {
  const auto found = runs_.find(trial);
  if (found == runs_.end()) return;
  Run& run = found->second;
  if (std::any_of(run.ranks.begin(), run.ranks.end(), [](const Rank& one) { return one.is_open; }))
    return;
  const bool is_over = run.leader ? run.leader->is_over() : run.is_begun || run.is_cancelled;
  if (!is_over) return;
  hosts_.give_back(run.process.placements);
  ended_.push_back(std::move(run.end));
  waiting_.erase(trial);
  runs_.erase(found);
}

}  // namespace kolo::tune
