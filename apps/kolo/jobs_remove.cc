// kolo rm, kolo kill, kolo retry: they select jobs as kolo ls does, and say so when nothing is
// selected.
#include <fmt/format.h>

#include "base/errors.h"
#include "base/plural.h"
#include "commands.h"
#include "jobs/database/queued_launches.h"
#include "jobs_database.h"
#include "jobs_selection.h"

namespace kolo::app {
namespace {

constexpr OptionText kSelectedIds{
    "ID", "", "The number of a job or a launch.", {.is_optional = true}};
constexpr OptionText kSelectAll{"all", "", "Select all of them."};

/// Throws not_found when there are none, invalid_argument when nothing was selected.
std::vector<jobs::JobId> selected(jobs::JobDatabase& database, const JobSelection& selection,
                                  const std::vector<std::string>& ids, bool all) {
  auto filter = selection.filter();
  for (const auto& id : ids) filter.ids.push_back(parse_job_id(id));
  const bool any =
      filter.ids.empty() && !filter.state && filter.workflow.empty() && filter.name.empty();
  if (any && !all)
    throw_error(ErrorCode::invalid_argument,
                "no jobs are selected: give numbers, --name, --wf, --state or --all");
  std::vector<jobs::JobId> found;
  for (const auto& job : database.find(filter)) found.push_back(job.id);
  if (found.empty()) throw_error(ErrorCode::not_found, "{}", describe_nothing(filter));
  return found;
}

struct RmOptions {
  std::string what;
  std::vector<std::string> ids;
  JobSelection selection;
  bool all = false, force = false;
  void declare(OptionSet& set);
};
constexpr Option<RmOptions> kRmWhat[] = {
    {&RmOptions::what, "WHAT", "", "Remove jobs, applications (apps) or launches (queues).",
     choices("jobs|apps|queues")},
};
constexpr Option<RmOptions> kRmRows[] = {
    {&RmOptions::force, "force", "", "Accepted as Balsam has it, without effect: nothing is asked.",
     aliases("-f")},
};
void RmOptions::declare(OptionSet& set) {
  set.add("Arguments", kRmWhat, *this);
  set.add("Arguments", kSelectedIds, &ids);
  selection.declare(set);
  set.add("Selection", kSelectAll, &all);
  set.add("Other options", kRmRows, *this);
}

void remove_applications(jobs::JobDatabase& database, const RmOptions& options) {
  const std::string& name = options.selection.name;
  if (name.empty() && !options.all)
    throw_error(ErrorCode::invalid_argument, "no application is selected: give --name or --all");
  std::int64_t removed = 0;
  for (const auto& application : database.applications())
    if (name.empty() || application.name == name) {
      database.remove_application(application.name);
      ++removed;
    }
  if (removed == 0 && !name.empty())
    throw_error(ErrorCode::not_found, "there is no application '{}'", name);
  fmt::print("removed {}\n", counted(removed, "application"));
}

void cancel_launches(jobs::JobDatabase& database, const RmOptions& options) {
  std::vector<std::int64_t> ids;
  for (const auto& id : options.ids) ids.push_back(number_of(parse_job_id(id)));
  if (ids.empty() && !options.all)
    throw_error(ErrorCode::invalid_argument, "no launch is selected: give numbers or --all");
  fmt::print("cancelled {}\n", counted(jobs::cancel_launches(database, ids), "launch"));
}

int run_rm(RmOptions& options) {
  auto database = open_jobs();
  if (options.what == "apps") {
    remove_applications(database, options);
  } else if (options.what == "queues") {
    cancel_launches(database, options);
  } else {
    const auto ids = selected(database, options.selection, options.ids, options.all);
    fmt::print("removed {}\n", counted(database.remove(ids), "job"));
  }
  return 0;
}

struct KillOptions {
  std::vector<std::string> ids;
  JobSelection selection;
  bool all = false, recursive = false;
  void declare(OptionSet& set);
};
constexpr Option<KillOptions> kKillRows[] = {
    {&KillOptions::recursive, "recursive", "", "Kill the jobs that wait for them as well.",
     aliases("-r")},
};
void KillOptions::declare(OptionSet& set) {
  set.add("Arguments", kSelectedIds, &ids);
  selection.declare(set);
  set.add("Selection", kSelectAll, &all);
  set.add("Other options", kKillRows, *this);
}

int run_kill(KillOptions& options) {
  auto database = open_jobs();
  const auto ids = selected(database, options.selection, options.ids, options.all);
  fmt::print("killed {}\n", counted(database.kill(ids, options.recursive), "job"));
  return 0;
}

struct RetryOptions {
  std::vector<std::string> ids;
  JobSelection selection;
  bool all = false;
  void declare(OptionSet& set);
};
void RetryOptions::declare(OptionSet& set) {
  set.add("Arguments", kSelectedIds, &ids);
  selection.declare(set);
  set.add("Selection", kSelectAll, &all);
}

int run_retry(RetryOptions& options) {
  auto database = open_jobs();
  auto ids = selected(database, options.selection, options.ids, options.all);
  // Of those that a filter selects, the others need no retry; a job that is named is meant.
  if (options.ids.empty() && options.selection.ids.empty())
    std::erase_if(ids, [&](jobs::JobId id) {
      const auto state = database.job(id).state;
      return state != jobs::JobState::failed && state != jobs::JobState::user_killed;
    });
  if (ids.empty())
    throw_error(ErrorCode::not_found, "none of the selected jobs has failed or was killed");
  const auto retried = database.retry(ids);
  fmt::print("{} run{} again\n", counted(retried, "job"), retried == 1 ? "s" : "");
  return 0;
}

}  // namespace

constinit const Command kRetry{
    .name = "retry",
    .summary = "Run jobs again that failed or were killed, and the jobs that failed with them",
    .examples = "kolo retry 7\nkolo retry --wf TEST --state FAILED\n",
    .notes =
        "A job that had begun starts again in its folder. Jobs that failed because they waited for "
        "it wait for it again.",
    .options = declared<RetryOptions>,
    .run = run_declared<RetryOptions, run_retry>,
};

constinit const Command kRm{
    .name = "rm",
    .summary = "Remove jobs or applications, or take launches out of batch queues",
    .examples = "kolo rm jobs --state FAILED\nkolo rm queues 3\n",
    .notes = "The folders of removed jobs stay. Launches that run already are ended.",
    .options = declared<RmOptions>,
    .run = run_declared<RmOptions, run_rm>,
};

constinit const Command kKill{
    .name = "kill",
    .summary = "End jobs",
    .examples = "kolo kill 7 8\n",
    .notes = "A job that runs gets SIGTERM, then SIGKILL. Jobs that wait for it fail.",
    .options = declared<KillOptions>,
    .run = run_declared<KillOptions, run_kill>,
};

}  // namespace kolo::app
