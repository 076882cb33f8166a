// What a launcher could run is computed from the row it keeps in the database: obstacle_of()
// rebuilds its nodes as if they were empty and asks Nodes, the class with which launchers place
// jobs. So the answer says whether a job can ever run there, not whether a node is free at this
// moment. A launcher counts as alive while it is heard of within its lease. explain() goes from the
// past to the future: the history since the last start, then who holds the job, then what it waits
// for. The batch system is asked only where no launcher is alive, because its commands may be slow.
#include "jobs/database/explain.h"

#include <algorithm>
#include <set>

#include "base/errors.h"
#include "base/json.h"
#include "jobs/database/body.h"
#include "jobs/database/leases.h"
#include "jobs/database/name_pattern.h"
#include "jobs/database/queued_launches.h"
#include "jobs/pilot/nodes.h"

namespace kolo::jobs {
namespace {

constexpr const char* kRecord = "the record of a launcher";

std::string name_of(const LauncherRecord& launcher) {
  return fmt::format("launcher {} ({}, process {})", launcher.id, launcher.host, launcher.pid);
}

void explain_parents(JobDatabase& jobs, const Job& job, std::vector<std::string>& lines) {
  for (const JobId id : jobs.parents(job.id)) {
    const Job parent = jobs.job(id);
    if (parent.state == JobState::job_finished) continue;
    lines.push_back(fmt::format("it waits for job {} ({}), which is {}", raw(id), parent.name,
                                to_string(parent.state)));
  }
}

/// The job itself, or the one above it whose failure it shares. There may be very many above it,
/// and in a damaged database one that is above itself.
JobId first_to_retry(JobDatabase& jobs, JobId id) {
  const auto has_failed = [&jobs](JobId parent) {
    const JobState state = jobs.job(parent).state;
    return state == JobState::failed || state == JobState::user_killed;
  };
  for (std::set<JobId> seen; seen.insert(id).second;) {
    const auto parents = jobs.parents(id);
    const auto failed = std::find_if(parents.begin(), parents.end(), has_failed);
    if (failed == parents.end()) break;
    id = *failed;
  }
  return id;
}

/// The reasons in its history since it was last started, the cause first; and its output.
void explain_past(JobDatabase& jobs, const Job& job, std::vector<std::string>& lines) {
  const auto history = jobs.history(job.id);
  auto first = history.size();
  while (first > 0 && history[first - 1].state != JobState::running) --first;
  const bool has_run = first > 0;
  if (!has_run && !history.empty()) first = history.size() - 1;
  for (auto i = first; i < history.size(); ++i)
    if (!history[i].reason.empty())
      lines.push_back(fmt::format("{}: {}", to_string(history[i].state), history[i].reason));
  if (!has_run) return;
  if (job.return_code) lines.push_back(fmt::format("its exit status was {}", *job.return_code));
  lines.push_back(
      fmt::format("its output is in {}", (jobs.folder_of(job) / (job.name + ".out")).string()));
}

/// The nodes of a launcher as its record has them. Throws what is wrong with the record.
std::vector<Node> nodes_in(const Json& about) {
  constexpr std::int64_t kMost = 100'000'000;  // cores and GPUs that are laid out here
  const auto field = [&about](const char* name, int otherwise, int least) {
    const int count = about.contains(name) ? json_field<int>(about, name, kRecord) : otherwise;
    if (count < least) throw_error(ErrorCode::corruption, "{}: '{}' is {}", kRecord, name, count);
    return count;
  };
  const std::int64_t nodes = field("nodes", 1, 0);
  const Node node{"", field("cores", 1, 0), field("gpus", 0, 0)};
  if (nodes * (1 + std::int64_t{node.cores} + node.gpus) > kMost)
    throw_error(ErrorCode::corruption, "{}: it has {} nodes of {} cores and {} GPUs", kRecord,
                nodes, node.cores, node.gpus);
  return std::vector<Node>(static_cast<std::size_t>(nodes), node);
}

std::string text_in(const Json& about, const char* name, const char* otherwise) {
  return about.contains(name) ? json_field<std::string>(about, name, kRecord) : otherwise;
}

/// What keeps one launcher from taking the job; "" if nothing does.
std::string obstacle_of(const LauncherRecord& launcher, const Job& job, const Job* beside) try {
  const Json about = parse_json(launcher.about, kRecord);
  if (!about.is_object()) throw_error(ErrorCode::corruption, "{}: it is no JSON object", kRecord);
  const auto filter = text_in(about, "workflow", "");
  if (!NamePattern(filter).selects(job.workflow))
    return fmt::format("it takes only jobs of the workflow {}, and this one is of {}", filter,
                       job.workflow);
  const JobMode mode = parse_job_mode(text_in(about, "mode", "mixed"));
  if (mode == JobMode::serial && (job.num_nodes > 1 || job.ranks_per_node > 1))
    return "it is in serial mode, and takes only jobs of one node and one rank";
  Nodes nodes(nodes_in(about), JobMode::mixed);
  const Need need = need_of(job, mode);
  if (auto obstacle = nodes.obstacle(need); !obstacle.empty() || beside == nullptr) return obstacle;
  const Need kept = need_of(*beside, mode);
  if (const auto places = nodes.find(kept); !places.empty()) nodes.take(kept, places);
  if (!nodes.find(need).empty()) return {};
  return fmt::format(
      "job {} ({}) keeps 1/{} of a node, and what is left does not suffice; give that job "
      "--node-packing-count 1, and it shares its node with the jobs it waits for",
      raw(beside->id), beside->name, beside->node_packing_count);
} catch (const Error& error) {
  return fmt::format("its record cannot be read: {}", error.message());
}

/// Calls told(launcher, silent seconds, whether it is alive, obstacle) of each that has not signed
/// off.
template <class Told>
void look_at_launchers(JobDatabase& jobs, const Job& job, const Job* beside, Told&& told) {
  const double now = body_of(jobs).lease_date();
  for (const auto& launcher : launchers(jobs, true)) {
    const double silent = now - launcher.heard;
    const bool is_alive = silent <= launcher.lease_seconds;
    told(launcher, silent, is_alive, is_alive ? obstacle_of(launcher, job, beside) : std::string());
  }
}

void explain_launchers(JobDatabase& jobs, const Job& job, std::vector<std::string>& lines) {
  int alive = 0, able = 0;
  look_at_launchers(
      jobs, job, nullptr,
      [&](const LauncherRecord& launcher, double silent, bool is_alive,
          const std::string& obstacle) {
        alive += is_alive ? 1 : 0;
        if (!is_alive)
          lines.push_back(
              fmt::format("{} has not been heard of for {:.0f} s", name_of(launcher), silent));
        else if (obstacle.empty())
          ++able;
        else
          lines.push_back(fmt::format("{} cannot take it: {}", name_of(launcher), obstacle));
      });
  if (able > 0) {
    lines.push_back(
        "a launcher can run it; all its nodes are in use by other jobs, or it is just "
        "about to start");
    return;
  }
  if (alive > 0) return;
  lines.push_back("no launcher is alive: start one with kolo launcher or kolo submit-launch");
  std::string trouble;
  for (const auto& launch : queued_launches(jobs, true, trouble))
    if (launch.state != "finished")
      lines.push_back(fmt::format("launch {} is {} ({} {}){}", launch.id, launch.state,
                                  launch.scheduler, launch.scheduler_id,
                                  launch.reason.empty() ? "" : ": " + launch.reason));
  if (!trouble.empty()) lines.push_back("the batch system: " + trouble);
}

}  // namespace

Prospect prospect_of(JobDatabase& jobs, const Job& job, JobId beside) {
  Prospect prospect;
  std::optional<Job> other;
  if (beside != JobId{}) other = jobs.job(beside);
  look_at_launchers(
      jobs, job, other ? &*other : nullptr,
      [&](const LauncherRecord& launcher, double, bool is_alive, const std::string& obstacle) {
        if (!is_alive) return;
        ++prospect.alive;
        if (obstacle.empty())
          ++prospect.able;
        else
          prospect.obstacle = fmt::format("{}: {}", name_of(launcher), obstacle);
      });
  return prospect;
}

std::vector<std::string> explain(JobDatabase& jobs, JobId id) {
  const Job job = jobs.job(id);
  std::vector<std::string> lines;
  lines.push_back(fmt::format("job {} ({}) is {}", raw(id), job.name, to_string(job.state)));
  explain_past(jobs, job, lines);
  if (job.launcher != 0)
    for (const auto& launcher : launchers(jobs, false))
      if (launcher.id == job.launcher) {
        const double silent = body_of(jobs).lease_date() - launcher.heard;
        lines.push_back(fmt::format("{} has it; heard of {:.0f} s ago, its lease is {} s",
                                    name_of(launcher), silent, launcher.lease_seconds));
        if (silent > launcher.lease_seconds)
          lines.push_back("that launcher is lost; the next one to look frees the job");
      }
  if (job.state == JobState::failed || job.state == JobState::user_killed)
    lines.push_back(fmt::format("kolo retry {} runs it again", raw(first_to_retry(jobs, id))));
  if (is_end(job.state) || job.launcher != 0) return lines;
  if (job.state == JobState::awaiting_parents)
    explain_parents(jobs, job, lines);
  else
    explain_launchers(jobs, job, lines);
  return lines;
}

}  // namespace kolo::jobs
