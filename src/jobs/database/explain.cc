#include "jobs/database/explain.h"

#include "base/errors.h"
#include "base/json.h"
#include "jobs/database/body.h"
#include "jobs/database/leases.h"
#include "jobs/database/queued_launches.h"
#include "jobs/pilot/nodes.h"

namespace kolo::jobs {
namespace {

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

/// What keeps one launcher from taking the job; "" if nothing does.
std::string obstacle_of(const LauncherRecord& launcher, const Job& job) {
  const Json about = parse_json(launcher.about, "a launcher");
  const auto filter = about.value("workflow", std::string());
  if (job.workflow.find(filter) == std::string::npos)
    return fmt::format("takes only workflows with '{}' in their name", filter);
  const JobMode mode = parse_job_mode(about.value("mode", std::string("mixed")));
  if (mode == JobMode::serial && (job.num_nodes > 1 || job.ranks_per_node > 1))
    return "is in serial mode: one node and one rank only";
  const Nodes nodes(std::vector<Node>(static_cast<std::size_t>(about.value("nodes", 1)),
                                      Node{"", about.value("cores", 1), about.value("gpus", 0)}),
                    JobMode::mixed);
  return nodes.obstacle(need_of(job, mode));
}

void explain_launchers(JobDatabase& jobs, const Job& job, std::vector<std::string>& lines) {
  const double now = body_of(jobs).lease_date();
  int alive = 0, able = 0;
  for (const auto& launcher : launchers(jobs, true)) {
    if (launcher.heard + launcher.lease_seconds < now) {
      lines.push_back(fmt::format("{} has not been heard of for {:.0f} s", name_of(launcher),
                                  now - launcher.heard));
      continue;
    }
    ++alive;
    const std::string obstacle = obstacle_of(launcher, job);
    if (obstacle.empty())
      ++able;
    else
      lines.push_back(fmt::format("{} cannot take it: {}", name_of(launcher), obstacle));
  }
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
      lines.push_back(fmt::format("launch {} is {} ({} {})", launch.id, launch.state,
                                  launch.scheduler, launch.scheduler_id));
  if (!trouble.empty()) lines.push_back("the batch system: " + trouble);
}

}  // namespace

std::vector<std::string> explain(JobDatabase& jobs, JobId id) {
  const Job job = jobs.job(id);
  const auto history = jobs.history(id);
  std::vector<std::string> lines;
  lines.push_back(fmt::format("job {} ({}) is {}", raw(id), job.name, to_string(job.state)));
  if (!history.empty() && !history.back().reason.empty())
    lines.push_back("the last entry in its history: " + history.back().reason);
  if (job.launcher != 0)
    for (const auto& launcher : launchers(jobs, false))
      if (launcher.id == job.launcher) {
        const double silent = body_of(jobs).lease_date() - launcher.heard;
        lines.push_back(fmt::format("{} has it; heard of {:.0f} s ago, its lease is {} s",
                                    name_of(launcher), silent, launcher.lease_seconds));
        if (silent > launcher.lease_seconds)
          lines.push_back("that launcher is lost; the next one to look frees the job");
      }
  if (is_end(job.state) || job.launcher != 0) return lines;
  if (job.state == JobState::awaiting_parents)
    explain_parents(jobs, job, lines);
  else
    explain_launchers(jobs, job, lines);
  return lines;
}

}  // namespace kolo::jobs
