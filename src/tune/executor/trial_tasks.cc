#include "tune/executor/trial_tasks.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <optional>

#include "base/errors.h"
#include "base/secret.h"
#include "base/subprocess.h"
#include "launch/environment.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

/// The controller kills a run when its grace time is over, and says so. The custodian does it only
/// where the controller did not.
constexpr std::chrono::milliseconds kAfterTheController{2000};

fs::path file_of_rank(const fs::path& path, int rank) {
  return rank == 0 ? path : fs::path(path.string() + "." + std::to_string(rank));
}

bool was_terminated(int status) {
  return WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT);
}

}  // namespace

TrialTasks::TrialTasks(fs::path study_directory)
    : study_directory_(std::move(study_directory)),
      link_(exec::Link::to_this_machine(study_directory_)) {}

TrialTasks::Run* TrialTasks::find(RunId id) {
  const auto found = runs_.find(id.trial);
  return found != runs_.end() && found->second.end.id == id ? &found->second : nullptr;
}

void TrialTasks::start(const RunProcess& process) {
  Run run;
  run.end.id = process.id;
  run.is_ring = process.ranks > 0;
  const int size = std::max(1, process.ranks);
  const launch::Placement placement{"localhost", 0, size, true};
  std::optional<Secret> secret;
  std::string rendezvous;
  if (size > 1) {
    comm::rendezvous::ServerOptions options;
    options.size = size;
    secret = options.secret;
    run.server = std::make_unique<comm::rendezvous::Server>(std::move(options));
    rendezvous = run.server->addresses().front().str();
  }
  std::vector<exec::Task> tasks;
  for (int rank = 0; rank < size; ++rank) {
    exec::Task& task = tasks.emplace_back();
    task.id = next_task_++;
    task.argv = process.argv;
    task.environment = process.environment;
    task.directory = process.directory;
    task.streams = {false, file_of_rank(process.out, rank), file_of_rank(process.err, rank)};
    task.grace = {process.grace + kAfterTheController, {}, {}};
    if (rank == 0 && process.descriptor >= 0)
      task.descriptors = {{process.descriptor, process.descriptor_variable}};
    if (run.is_ring) {
      const auto variables = launch::rank_variables({placement}, placement, rank, rendezvous);
      task.environment.insert(task.environment.end(), variables.begin(), variables.end());
      task.share = {rank, size};
      task.tell_exit = true;
      if (secret) task.secret = secret->bytes();
    }
    run.ranks.push_back({task.id, RunOutput(task.streams.err)});
    tasks_[task.id] = {process.id.trial, static_cast<std::size_t>(rank)};
  }
  runs_.insert_or_assign(process.id.trial, std::move(run));
  for (const auto& task : tasks) link_->start(task);
}

void TrialTasks::stop(RunId id) {
  if (Run* run = find(id))
    for (const auto& rank : run->ranks)
      if (rank.is_open) link_->end(rank.task);
}

void TrialTasks::kill(RunId id) {
  if (Run* run = find(id))
    for (const auto& rank : run->ranks)
      if (rank.is_open) link_->kill(rank.task);
}

std::vector<RunEnd> TrialTasks::receive() {
  std::vector<RunEnd> ends;
  for (const auto& event : link_->receive()) {
    const auto* exited = std::get_if<exec::Exited>(&event);
    const auto* ended = std::get_if<exec::TaskEnd>(&event);
    if (exited == nullptr && ended == nullptr) continue;
    const auto place = tasks_.find(exited != nullptr ? exited->id : ended->id);
    if (place == tasks_.end()) continue;
    const auto [trial, rank] = place->second;
    Run& run = runs_.at(trial);
    if (exited != nullptr) {
      rank_exited(run, rank, exited->status);
      continue;
    }
    tasks_.erase(place);
    rank_ended(run, rank, *ended);
    if (std::any_of(run.ranks.begin(), run.ranks.end(),
                    [](const Rank& one) { return one.is_open; }))
      continue;
    ends.push_back(std::move(run.end));
    runs_.erase(trial);
  }
  if (link_->closed()) {
    auto lost = replace_custodian();
    std::move(lost.begin(), lost.end(), std::back_inserter(ends));
  }
  return ends;
}

void TrialTasks::rank_exited(Run& run, std::size_t rank, int status) {
  const std::string how = describe_wait_status(status);
  if (run.server) run.server->announce({static_cast<int>(rank), how});
  if (status != 0) fail(run, rank, fmt::format("rank {} {}", rank, how), was_terminated(status));
}

void TrialTasks::rank_ended(Run& run, std::size_t rank, const exec::TaskEnd& end) {
  run.ranks[rank].is_open = false;
  if (!end.error.empty())
    fail(run, rank, end.error);
  else if (!run.is_ring && end.status != 0)
    fail(run, rank, "the program " + describe_wait_status(end.status), was_terminated(end.status));
}

/// The first failure is the reason; those that follow are consequences.
void TrialTasks::fail(Run& run, std::size_t rank, const std::string& error, bool was_terminated) {
  if (!run.end.error.empty()) return;
  run.end.error = error;
  run.end.was_terminated = was_terminated;
  run.end.said = run.ranks[rank].err;
  for (const auto& other : run.ranks)
    if (other.is_open && other.task != run.ranks[rank].task) link_->end(other.task);
}

std::vector<RunEnd> TrialTasks::replace_custodian() {
  const std::string reason = link_->reason_of_end();  // waits until nothing is left
  std::vector<RunEnd> lost;
  for (auto& [trial, run] : runs_) {
    if (run.end.error.empty())
      run.end.error = "the process that starts and watches trials was lost: " + reason;
    lost.push_back(std::move(run.end));
  }
  runs_.clear();
  tasks_.clear();
  link_ = exec::Link::to_this_machine(study_directory_);
  return lost;
}

}  // namespace kolo::tune
