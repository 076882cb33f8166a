#include "jobs_common.h"

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <charconv>
#include <ctime>

#include "base/env.h"
#include "base/errors.h"
#include "base/words.h"
#include "jobs/pilot/nodes.h"

namespace kolo::app {

namespace fs = std::filesystem;
using jobs::JobId;

fs::path database_folder() {
  for (const char* name : {"KOLO_DB", "BALSAM_DB_PATH"})
    if (auto folder = environment(name)) return *folder;
  if (fs::exists("kolo-jobs.json")) return ".";
  throw_error(ErrorCode::failed_precondition,
              "which database? Make one with `kolo init DIR`, then eval \"$(kolo activate DIR)\"");
}

jobs::JobDatabase open_jobs() { return jobs::JobDatabase::open(database_folder()); }

JobId parse_job_id(const std::string& text) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 1)
    throw_error(ErrorCode::invalid_argument, "'{}' is not the number of a job; kolo ls shows them",
                text);
  return JobId{id};
}

std::span<const Setting> filter_settings() {
  static constexpr Setting kTable[] = {
      {"id", "", "", "N", "", "this job", true},
      {"name", "", "", "PART", "", "jobs whose name has this part"},
      {"wf", "--wf-filter --workflow", "", "PART", "", "jobs whose workflow has this part"},
      {"state", "", "", "STATE", "", "jobs in this state"},
  };
  return kTable;
}

jobs::JobFilter filter_of(const Options& options) {
  jobs::JobFilter filter;
  for (const auto& id : options.texts("id")) filter.ids.push_back(parse_job_id(id));
  if (const auto state = options.text("state")) filter.state = jobs::parse_state(*state);
  filter.workflow = options.text("wf").value_or("");
  filter.name = options.text("name").value_or("");
  return filter;
}

std::string describe_nothing(const jobs::JobFilter& filter) {
  std::vector<std::string> parts;
  for (const JobId id : filter.ids) parts.push_back(fmt::format("the number {}", number_of(id)));
  if (!filter.name.empty()) parts.push_back(fmt::format("'{}' in its name", filter.name));
  if (!filter.workflow.empty())
    parts.push_back(fmt::format("'{}' in its workflow", filter.workflow));
  if (filter.state) parts.push_back(fmt::format("the state {}", jobs::to_string(*filter.state)));
  if (parts.empty()) return "there are no jobs";
  return fmt::format("no job has {}", fmt::join(parts, " and "));
}

std::span<const Setting> allocation_settings() {
  static constexpr Setting kTable[] = {
      {"nodes", "-n", "", "N", "1", "nodes of the allocation"},
      {"time-minutes", "-t --wall-minutes", "", "N", "60", "its time"},
      {"queue", "-q", "", "NAME", "the system's", "queue or partition"},
      {"project", "-A", "", "NAME", "", "project or account"},
      {"job-mode", "-j", "", "MODE", "mixed", "mixed, serial or mpi; see kolo launcher"},
      {"sched-flags", "", "", "WORDS", "", "a further directive for the batch system", true},
      {"launcher-flags", "", "", "WORDS", "", "further options for kolo launcher"},
      {"scheduler", "", "", "NAME", "the one found here", "see kolo list batch-systems"},
      {"dry-run", "", "", "", "", "print the script, submit nothing"}};
  return kTable;
}

jobs::LaunchRequest allocation_of(const Options& options) {
  jobs::LaunchRequest request;
  request.batch.nodes = static_cast<int>(options.integer("nodes", 1).value_or(1));
  request.batch.minutes = static_cast<int>(options.integer("time-minutes", 1).value_or(60));
  request.batch.queue = options.text("queue").value_or("");
  request.batch.project = options.text("project").value_or("");
  request.batch.flags = options.texts("sched-flags");
  request.job_mode = options.text("job-mode").value_or("mixed");
  (void)jobs::parse_job_mode(request.job_mode);
  request.kolo = own_program();
  for (const auto& words : options.texts("launcher-flags"))
    for (auto& word : split_words(words, "--launcher-flags"))
      request.launcher_options.push_back(std::move(word));
  for (const auto* text : {&request.batch.queue, &request.batch.project})
    if (text->find('\n') != std::string::npos)
      throw_error(ErrorCode::invalid_argument, "a queue or project of several lines");
  return request;
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i + 1 < row.size() ? fmt::format("{:<{}}  ", row[i], widths[i]) : row[i];
    fmt::print("{}\n", line);
  }
}

std::string time_text(double seconds_since_1970) {
  return fmt::format("{:%m-%d-%Y %H:%M:%S}",
                     fmt::localtime(static_cast<std::time_t>(seconds_since_1970)));
}

void print_options_help(std::string_view usage, std::string_view about,
                        std::span<const Setting> table) {
  fmt::print("{}\n\nUsage: {}\n", about, usage);
  if (!table.empty())
    fmt::print("\nOptions (a unique beginning of a name is enough):\n{}", help_text(table));
}

std::string own_program() { return fs::read_symlink("/proc/self/exe").string(); }

}  // namespace kolo::app
