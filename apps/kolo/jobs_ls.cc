// kolo ls
#include <fmt/ranges.h>

#include <set>

#include "base/env.h"
#include "base/errors.h"
#include "base/registry.h"
#include "commands.h"
#include "jobs/database/fields.h"
#include "jobs/database/queued_launches.h"
#include "jobs_common.h"

namespace kolo::app {
namespace {

using jobs::Job;
using jobs::JobDatabase;
using jobs::JobId;

constexpr std::int64_t kMostListed = 5000;

/// KOLO_LS_FIELDS=a:b adds columns.
std::vector<std::string> further_columns() {
  std::vector<std::string> columns;
  std::string text = environment("KOLO_LS_FIELDS").value_or("");
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(':', begin), text.size());
    columns.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return columns;
}

std::vector<std::string> row_of(const Job& job, const std::vector<std::string>& further) {
  std::vector<std::string> row = {std::to_string(number_of(job.id)), job.name, job.workflow,
                                  job.application, std::string(jobs::to_string(job.state))};
  for (const auto& column : further) {
    const auto* field = jobs::find_field(column);
    row.push_back(field != nullptr ? jobs::field_text(job, *field) : "?");
  }
  return row;
}

void print_history(JobDatabase& database, const Job& job) {
  fmt::print("Job {} {} [{}]\n", number_of(job.id), job.name, jobs::to_string(job.state));
  for (const auto& entry : database.history(job.id))
    fmt::print("[{} {}] {}\n", time_text(entry.time), jobs::to_string(entry.state), entry.reason);
}

void print_tree(JobDatabase& database, const Job& job, int depth, std::set<JobId>& seen) {
  fmt::print("{}{} {} {} [{}]{}\n", std::string(static_cast<std::size_t>(depth) * 2, ' '),
             depth > 0 ? "└" : "*", number_of(job.id), job.name, jobs::to_string(job.state),
             seen.contains(job.id) ? " (see above)" : "");
  if (!seen.insert(job.id).second) return;
  for (const JobId child : database.children(job.id))
    print_tree(database, database.job(child), depth + 1, seen);
}

void list_jobs(JobDatabase& database, const Options& options) {
  auto filter = filter_of(options);
  filter.limit = options.integer("limit", 1).value_or(kMostListed);
  if (options.has("by-states")) {
    std::vector<std::vector<std::string>> rows = {{"workflow", "state", "jobs"}};
    for (const auto& count : database.count_by_state(filter.workflow))
      if (!filter.state || *filter.state == count.state)
        rows.push_back({count.workflow, std::string(jobs::to_string(count.state)),
                        std::to_string(count.jobs)});
    return print_table(rows);
  }
  const auto found = database.find(filter);
  if (options.has("json")) {
    Json all = Json::array();
    for (const auto& job : found) {
      Json one = jobs::job_json(job);
      for (const JobId parent : database.parents(job.id))
        one["parents"].push_back(number_of(parent));
      if (options.has("history"))
        for (const auto& entry : database.history(job.id))
          one["history"].push_back({{"state", jobs::to_string(entry.state)},
                                    {"time", entry.time},
                                    {"reason", entry.reason}});
      all.push_back(std::move(one));
    }
    fmt::print("{}\n", all.dump(1));
    return;
  }
  if (found.empty()) {
    fmt::print(stderr, "{}\n", describe_nothing(filter));
    return;
  }
  if (options.has("history")) {
    for (const auto& job : found) print_history(database, job);
    return;
  }
  if (options.has("tree")) {
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
  if (options.has("verbose")) {
    for (const auto& job : found) fmt::print("{}\n", jobs::job_json(job).dump(1));
    return;
  }
  const auto further = further_columns();
  std::vector<std::vector<std::string>> rows = {
      {"job_id", "name", "workflow", "application", "state"}};
  rows[0].insert(rows[0].end(), further.begin(), further.end());
  for (const auto& job : found) rows.push_back(row_of(job, further));
  print_table(rows);
  if (std::ssize(found) == filter.limit)
    fmt::print(stderr, "only the first {} are shown; --limit N shows more\n", filter.limit);
}

void list_applications(JobDatabase& database, const Options& options) {
  if (options.has("json")) {
    Json all = Json::array();
    for (const auto& one : database.applications())
      all.push_back({{"name", one.name},
                     {"executable", one.executable},
                     {"preprocess", one.preprocess},
                     {"postprocess", one.postprocess},
                     {"envscript", one.envscript},
                     {"description", one.description}});
    fmt::print("{}\n", all.dump(1));
    return;
  }
  std::vector<std::vector<std::string>> rows = {{"name", "executable", "description"}};
  for (const auto& one : database.applications())
    rows.push_back({one.name, one.executable, one.description});
  print_table(rows);
}

void list_workflows(JobDatabase& database, const Options& options) {
  std::map<std::string, std::int64_t> jobs_of;
  for (const auto& count : database.count_by_state(options.text("wf").value_or("")))
    jobs_of[count.workflow] += count.jobs;
  std::vector<std::vector<std::string>> rows = {{"workflow", "jobs"}};
  for (const auto& [workflow, count] : jobs_of) rows.push_back({workflow, std::to_string(count)});
  print_table(rows);
}

void list_queues(JobDatabase& database, const Options& options) {
  std::string trouble;
  const auto launches = jobs::queued_launches(database, true, trouble);
  if (options.has("json")) {
    Json all = Json::array();
    for (const auto& one : launches)
      all.push_back({{"id", one.id},
                     {"scheduler", one.scheduler},
                     {"scheduler_id", one.scheduler_id},
                     {"state", one.state},
                     {"about", parse_json(one.about, "a launch")}});
    fmt::print("{}\n", all.dump(1));
  } else {
    std::vector<std::vector<std::string>> rows = {
        {"id", "scheduler", "scheduler_id", "state", "submitted"}};
    for (const auto& one : launches)
      rows.push_back({std::to_string(one.id), one.scheduler, one.scheduler_id, one.state,
                      time_text(one.created)});
    print_table(rows);
  }
  if (!trouble.empty()) fmt::print(stderr, "kolo ls: {}\n", trouble);
}

}  // namespace

int run_command_ls(const Arguments& arguments) {
  std::vector<Setting> table(filter_settings().begin(), filter_settings().end());
  table.insert(table.end(), {{"history", "", "", "", "", "all states, with times and reasons"},
                             {"tree", "", "", "", "", "by dependencies"},
                             {"by-states", "", "", "", "", "how many in each state"},
                             {"verbose", "-v", "", "", "", "all fields"},
                             {"limit", "", "", "N", "5000", "at most so many"},
                             {"json", "", "", "", "", "for programs"},
                             {"help", "-h", "", "", "", "this text"}});
  const Options options(table, arguments);
  if (options.has("help")) {
    print_options_help("kolo ls [jobs|apps|wf|queues] [OPTIONS]",
                       "Lists jobs, applications, workflows, or launches in batch queues.\n"
                       "KOLO_LS_FIELDS=a:b adds columns to the list of jobs.",
                       table);
    return 0;
  }
  options.expect_words(0, 1, "kolo ls [jobs|apps|wf|queues]");
  const std::string what = options.words().empty() ? "jobs" : options.words()[0];
  auto database = open_jobs();
  if (what == "jobs")
    list_jobs(database, options);
  else if (what == "apps")
    list_applications(database, options);
  else if (what == "wf")
    list_workflows(database, options);
  else if (what == "queues")
    list_queues(database, options);
  else
    throw_error(ErrorCode::invalid_argument, "jobs, apps, wf or queues, not '{}'", what);
  return 0;
}

}  // namespace kolo::app
