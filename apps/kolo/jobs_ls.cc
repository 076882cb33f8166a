// kolo ls
#include <fmt/chrono.h>

#include <algorithm>
#include <set>

#include "base/text_table.h"
#include "base/utf8.h"
#include "commands.h"
#include "jobs/database/fields.h"
#include "jobs/database/queued_launches.h"
#include "jobs_database.h"
#include "jobs_selection.h"
#include "study_store.h"

namespace kolo::app {
namespace {

using jobs::Job;
using jobs::JobDatabase;
using jobs::JobId;

struct LsOptions {
  std::string what = "jobs";
  JobSelection selection;
  bool history = false, tree = false, by_states = false, verbose = false, json = false;
  std::int64_t limit = 5000;
  std::string columns;
  void declare(OptionSet& set);
};
constexpr Option<LsOptions> kLsWhat[] = {
    {&LsOptions::what, "WHAT", "",
     "List jobs, applications (apps), workflows (wf), or launches in batch queues (queues).",
     choices("jobs|apps|wf|queues"), is_optional},
};
constexpr Option<LsOptions> kLsRows[] = {
    {&LsOptions::history, "history", "",
     "Print all states that a job went through, with times and reasons."},
    {&LsOptions::tree, "tree", "", "Print jobs below those that they wait for."},
    {&LsOptions::by_states, "by-states", "", "Print how many jobs are in each state."},
    {&LsOptions::verbose, "verbose", "", "Print all fields of jobs.", aliases("-v")},
    {&LsOptions::columns, "columns", "FIELD:FIELD…", "Add these fields of jobs as columns.",
     variables("LS_FIELDS")},
    {&LsOptions::limit, "limit", "N", "Print at most N jobs.", least(1)},
};
void LsOptions::declare(OptionSet& set) {
  set.add("Arguments", kLsWhat, *this);
  selection.declare(set);
  set.add("Output", kLsRows, *this);
  set.add("Output", kJsonOutput, &json);
}

/// "11-16-2026 04:05:06".
std::string time_text(double seconds_since_1970) {
  return fmt::format("{:%m-%d-%Y %H:%M:%S}",
                     fmt::localtime(static_cast<std::time_t>(seconds_since_1970)));
}

void print_rows(const std::vector<std::vector<std::string>>& rows) {
  fmt::print("{}", text_table(rows));
}

std::vector<std::string> row_of(const Job& job, const std::vector<std::string>& further) {
  std::vector<std::string> row = {std::to_string(number_of(job.id)), job.name, job.workflow,
                                  job.application, std::string(jobs::to_string(job.state))};
  for (const auto& column : further) {
    row.push_back(jobs::field_text(job, jobs::known_field(column, "column")));
  }
  return row;
}

void print_history(JobDatabase& database, const Job& job) {
  fmt::print("Job {} {} [{}]\n", number_of(job.id), job.name, jobs::to_string(job.state));
  for (const auto& entry : database.history(job.id))
    fmt::print("[{} {}] {}\n", time_text(entry.time), jobs::to_string(entry.state),
               printable_lines(entry.reason));
}

void print_tree(JobDatabase& database, const Job& job, int depth, std::set<JobId>& seen) {
  fmt::print("{}{} {} {} [{}]{}\n", std::string(static_cast<std::size_t>(depth) * 2, ' '),
             depth > 0 ? "└" : "*", number_of(job.id), job.name, jobs::to_string(job.state),
             seen.contains(job.id) ? " (see above)" : "");
  if (!seen.insert(job.id).second) return;
  for (const JobId child : database.children(job.id))
    print_tree(database, database.job(child), depth + 1, seen);
}

void list_jobs(JobDatabase& database, const LsOptions& options) {
  auto filter = options.selection.filter();
  filter.limit = options.limit;
  if (options.by_states) {
    std::vector<std::vector<std::string>> rows = {{"workflow", "state", "jobs"}};
    for (const auto& count : database.count_by_state(filter.workflow))
      if (!filter.state || *filter.state == count.state)
        rows.push_back({count.workflow, std::string(jobs::to_string(count.state)),
                        std::to_string(count.jobs)});
    return print_rows(rows);
  }
  const auto found = database.find(filter);
  if (options.json) {
    Json all = Json::array();
    for (const auto& job : found) {
      Json one = jobs::job_json(job);
      for (const JobId parent : database.parents(job.id))
        one["parents"].push_back(number_of(parent));
      if (options.history)
        for (const auto& entry : database.history(job.id))
          one["history"].push_back({{"state", jobs::to_string(entry.state)},
                                    {"time", entry.time},
                                    {"reason", entry.reason}});
      all.push_back(std::move(one));
    }
    fmt::print("{}\n", json_text(all, 1));
    return;
  }
  if (found.empty()) {
    fmt::print(stderr, "{}\n", describe_nothing(filter));
    return;
  }
  if (options.history) {
    for (const auto& job : found) print_history(database, job);
    return;
  }
  if (options.tree) {
    std::set<JobId> seen, listed;
    for (const auto& job : found) listed.insert(job.id);
    for (const auto& job : found) {
      const auto parents = database.parents(job.id);
      const bool is_root = std::none_of(parents.begin(), parents.end(),
                                        [&](JobId parent) { return listed.contains(parent); });
      if (is_root) print_tree(database, job, 0, seen);
    }
    return;
  }
  if (options.verbose) {
    for (const auto& job : found) fmt::print("{}\n", json_text(jobs::job_json(job), 1));
    return;
  }
  const auto further = cli::split(options.columns, ':');
  std::vector<std::vector<std::string>> rows = {
      {"job_id", "name", "workflow", "application", "state"}};
  rows[0].insert(rows[0].end(), further.begin(), further.end());
  for (const auto& job : found) rows.push_back(row_of(job, further));
  print_rows(rows);
  if (std::ssize(found) == filter.limit)
    fmt::print(stderr, "only the first {} are shown; --limit N shows more\n", filter.limit);
}

void list_applications(JobDatabase& database, const LsOptions& options) {
  if (options.json) {
    Json all = Json::array();
    for (const auto& one : database.applications())
      all.push_back({{"name", one.name},
                     {"executable", one.executable},
                     {"preprocess", one.preprocess},
                     {"postprocess", one.postprocess},
                     {"envscript", one.envscript},
                     {"description", one.description}});
    fmt::print("{}\n", json_text(all, 1));
    return;
  }
  std::vector<std::vector<std::string>> rows = {{"name", "executable", "description"}};
  for (const auto& one : database.applications())
    rows.push_back({one.name, one.executable, one.description});
  print_rows(rows);
}

void list_workflows(JobDatabase& database, const LsOptions& options) {
  std::map<std::string, std::int64_t> jobs_of;
  for (const auto& count : database.count_by_state(options.selection.workflow))
    jobs_of[count.workflow] += count.jobs;
  std::vector<std::vector<std::string>> rows = {{"workflow", "jobs"}};
  for (const auto& [workflow, count] : jobs_of) rows.push_back({workflow, std::to_string(count)});
  print_rows(rows);
}

void list_queues(JobDatabase& database, const LsOptions& options) {
  std::string trouble;
  const auto launches = jobs::queued_launches(database, true, trouble);
  if (options.json) {
    Json all = Json::array();
    for (const auto& one : launches)
      all.push_back({{"id", one.id},
                     {"scheduler", one.scheduler},
                     {"scheduler_id", one.scheduler_id},
                     {"state", one.state},
                     {"reason", one.reason},
                     {"about", parse_json(one.about, "a launch")}});
    fmt::print("{}\n", json_text(all, 1));
  } else {
    std::vector<std::vector<std::string>> rows = {
        {"id", "scheduler", "scheduler_id", "state", "submitted"}};
    const bool has_reasons = std::any_of(launches.begin(), launches.end(),
                                         [](const auto& one) { return !one.reason.empty(); });
    if (has_reasons) rows[0].emplace_back("reason");
    for (const auto& one : launches) {
      rows.push_back({std::to_string(one.id), one.scheduler,
                      one.scheduler_id.empty() ? "-" : one.scheduler_id, one.state,
                      time_text(one.created)});
      if (has_reasons) rows.back().push_back(one.reason);
    }
    print_rows(rows);
  }
  if (!trouble.empty()) fmt::print(stderr, "kolo ls: {}\n", trouble);
}

int run_ls(LsOptions& options) {
  auto database = open_jobs();
  if (options.what == "apps")
    list_applications(database, options);
  else if (options.what == "wf")
    list_workflows(database, options);
  else if (options.what == "queues")
    list_queues(database, options);
  else
    list_jobs(database, options);
  return 0;
}

}  // namespace

constinit const Command kLs{
    .name = "ls",
    .summary = "List jobs, applications, workflows, or launches in batch queues",
    .examples = "kolo ls --state FAILED\nkolo ls queues\n",
    .options = declared<LsOptions>,
    .run = run_declared<LsOptions, run_ls>,
};

}  // namespace kolo::app
