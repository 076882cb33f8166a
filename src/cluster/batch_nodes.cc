#include "cluster/batch_nodes.h"

#include <poll.h>

#include "base/errors.h"
#include "base/files.h"
#include "base/words.h"
#include "launch/allocation.h"

namespace kolo::cluster {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;
using launch::BatchState;

/// Batch systems are asked seldom; the file in which the nodes say where they are is looked at
/// more often.
constexpr auto kAskAgain = 2s;
constexpr int kLookMs = 100;
constexpr std::size_t kTailBytes = 2048;
/// Inside an allocation.
constexpr const char* kOwnProcess = "local";

fs::path log_of(const std::string& cluster) { return folder_of_cluster(cluster) / "job.log"; }

std::string new_ticket() {
  std::string ticket;
  for (const char byte : random_nonce().substr(0, 8))
    ticket += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return ticket;
}

struct JobState {
  BatchState state = BatchState::unknown;
  std::string words{};
};

JobState state_of(const BatchJob& job) {
  const auto answer = launch::make_batch_system(job.system)->status({job.id});
  JobState found{answer.states.at(job.id)};
  found.words = to_string(found.state);
  if (const auto reason = answer.reasons.find(job.id); reason != answer.reasons.end())
    found.words += " (" + reason->second + ")";
  if (found.state == BatchState::unknown) found.words += ": " + answer.trouble;
  return found;
}

std::string name_of(const BatchJob& job) {
  return job.system == kOwnProcess ? "this allocation"
                                   : fmt::format("job {} of {}", job.id, job.system);
}

void submit(const ClusterFile& file, Cluster& cluster) {
  const bool is_inside = file.batch.nodes == 0;
  if (is_inside && !launch::find_allocation())
    throw_error(ErrorCode::failed_precondition,
                "{}: provider: without 'nodes' it takes the nodes of the allocation that `kolo up` "
                "runs in, and this is none; say how many nodes to ask {} for",
                file.path.string(), file.batch_system);
  cluster.job = {is_inside ? kOwnProcess : file.batch_system, "", new_ticket()};
  cluster.members.clear();
  const auto system = launch::make_batch_system(cluster.job->system);
  launch::BatchRequest request = file.batch;
  request.log = log_of(cluster.name);
  const std::string kolo =
      cluster.kolo.empty() ? fs::read_symlink("/proc/self/exe").string() : cluster.kolo;
  request.commands =
      fmt::format("export XDG_STATE_HOME={}\nexec {} custodian nodes {} {} </dev/null\n",
                  shell_quoted(state_folder().parent_path().string()), shell_quoted(kolo),
                  shell_quoted(cluster.name), cluster.job->ticket);
  system->check(request);
  const std::string script = system->write_script(system->script_template(), request);
  save_cluster(cluster);  // from now on whatever was submitted can be found
  std::error_code none;
  fs::remove(log_of(cluster.name), none);
  write_file_atomically(kept_cluster_file(cluster.name), read_file(file.path), kPrivateFile);
  const fs::path path = folder_of_cluster(cluster.name) / "job.sh";
  write_file_atomically(path, script, 0700);
  cluster.job->id = system->submit(path);
  save_cluster(cluster);
}

}  // namespace

std::string describe_job(const BatchJob& job) {
  if (job.id.empty())
    return fmt::format("{} has not taken a job for it; repeat `kolo up`",
                       job.system == kOwnProcess ? "this allocation" : job.system);
  return fmt::format("{} is {}", name_of(job), state_of(job).words);
}

KeptNodes take_nodes(const ClusterFile& file, Cluster& cluster, const Tell& tell) {
  const bool is_lost = !cluster.job || cluster.job->id.empty() ||
                       state_of(*cluster.job).state == BatchState::finished;
  if (is_lost) submit(file, cluster);
  const BatchJob& job = *cluster.job;
  std::string said;
  for (Deadline ask = Deadline::after(0s);;) {
    if (auto kept = read_kept_nodes(cluster.name, job.ticket)) {
      if (!kept->error.empty())
        throw_error(ErrorCode::unavailable, "{}: {}", name_of(job), kept->error);
      return *std::move(kept);
    }
    if (ask.passed()) {
      const JobState found = state_of(job);
      if (found.state == BatchState::finished && !read_kept_nodes(cluster.name, job.ticket)) {
        const std::string tail = tail_of_file(log_of(cluster.name), kTailBytes);
        throw_error(ErrorCode::unavailable, "{} ended before its nodes answered: {}", name_of(job),
                    launch::shortened(tail));
      }
      if (found.words != said) tell({name_of(job), "is " + found.words});
      said = found.words;
      ask = Deadline::after(kAskAgain);
    }
    ::poll(nullptr, 0, kLookMs);
  }
}

void give_nodes_back(const Cluster& cluster, Deadline deadline) {
  const BatchJob& job = *cluster.job;
  if (job.id.empty()) return;  // it ends by itself: its cluster is forgotten
  if (state_of(job).state == BatchState::finished) return;
  std::string refusal;  // it may have ended in the meantime
  try {
    launch::make_batch_system(job.system)->cancel({job.id});
  } catch (const Error& error) {
    refusal = ": " + error.message();
  }
  while (state_of(job).state != BatchState::finished) {
    if (deadline.passed())
      throw_error(ErrorCode::timeout, "{} and does not end{}", describe_job(job), refusal);
    ::poll(nullptr, 0, kLookMs);
  }
}

}  // namespace kolo::cluster
