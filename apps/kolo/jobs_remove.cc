// kolo rm, kolo kill: they select jobs as kolo ls does, and say so when nothing is selected.
#include "base/errors.h"
#include "commands.h"
#include "jobs/database/queued_launches.h"
#include "jobs_common.h"

namespace kolo::app {
namespace {

std::vector<Setting> with_filters(std::initializer_list<Setting> more) {
  std::vector<Setting> table(filter_settings().begin(), filter_settings().end());
  table.insert(table.end(), more);
  table.push_back({"help", "-h", "", "", "", "this text"});
  return table;
}

/// Words are numbers of jobs, too.
std::vector<jobs::JobId> selected(jobs::JobDatabase& database, const Options& options,
                                  std::size_t first_word) {
  auto filter = filter_of(options);
  for (std::size_t i = first_word; i < options.words().size(); ++i)
    filter.ids.push_back(parse_job_id(options.words()[i]));
  const bool all =
      filter.ids.empty() && !filter.state && filter.workflow.empty() && filter.name.empty();
  if (all && !options.has("all"))
    throw_error(ErrorCode::invalid_argument, "which jobs? --id, --name, --wf, --state or --all");
  std::vector<jobs::JobId> ids;
  for (const auto& job : database.find(filter)) ids.push_back(job.id);
  if (ids.empty()) throw_error(ErrorCode::not_found, "{}", describe_nothing(filter));
  return ids;
}

}  // namespace

int run_command_rm(const Arguments& arguments) {
  const auto table = with_filters(
      {{"all", "", "", "", "", "all of them"}, {"force", "-f", "", "", "", "as Balsam has it"}});
  const Options options(table, arguments);
  constexpr std::string_view kUsage = "kolo rm jobs|apps|queues [ID …] [OPTIONS]";
  if (options.has("help")) {
    print_options_help(
        kUsage,
        "Removes jobs (not their folders) or applications; takes launches out of batch queues,\n"
        "and ends those that run.",
        table);
    return 0;
  }
  if (options.words().empty()) throw_error(ErrorCode::invalid_argument, "usage: {}", kUsage);
  auto database = open_jobs();
  const std::string& what = options.words()[0];
  if (what == "apps") {
    std::int64_t removed = 0;
    const auto part = options.text("name");
    if (!part && !options.has("all"))
      throw_error(ErrorCode::invalid_argument, "which applications? --name or --all");
    for (const auto& application : database.applications())
      if (!part || application.name == *part) {
        database.remove_application(application.name);
        ++removed;
      }
    if (removed == 0 && part)
      throw_error(ErrorCode::not_found, "there is no application '{}'", *part);
    fmt::print("removed {} applications\n", removed);
    return 0;
  }
  if (what == "queues") {
    std::vector<std::int64_t> ids;
    for (std::size_t i = 1; i < options.words().size(); ++i)
      ids.push_back(static_cast<std::int64_t>(parse_job_id(options.words()[i])));
    if (ids.empty() && !options.has("all"))
      throw_error(ErrorCode::invalid_argument, "which launches? Their numbers, or --all");
    fmt::print("cancelled {} launches\n", jobs::cancel_launches(database, ids));
    return 0;
  }
  if (what != "jobs")
    throw_error(ErrorCode::invalid_argument, "jobs, apps or queues, not '{}'", what);
  fmt::print("removed {} jobs\n", database.remove(selected(database, options, 1)));
  return 0;
}

int run_command_kill(const Arguments& arguments) {
  const auto table = with_filters({{"recursive", "-r", "", "", "", "and all that wait for them"},
                                   {"all", "", "", "", "", "all of them"}});
  const Options options(table, arguments);
  if (options.has("help")) {
    print_options_help("kolo kill [ID …] [OPTIONS]",
                       "Ends jobs: what runs gets SIGTERM, then SIGKILL; jobs that wait for them "
                       "fail.",
                       table);
    return 0;
  }
  auto database = open_jobs();
  const auto killed = database.kill(selected(database, options, 0), options.has("recursive"));
  fmt::print("killed {} jobs\n", killed);
  return 0;
}

}  // namespace kolo::app
