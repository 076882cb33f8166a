// kolo explain, kolo stats, kolo log: what goes on, and why it does not.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "base/errors.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "commands.h"
#include "jobs/database/explain.h"
#include "jobs/database/statistics.h"
#include "jobs_database.h"
#include "launcher_logs.h"

namespace kolo::app {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct ExplainOptions {
  std::string id;
  void declare(OptionSet& set);
};
constexpr Option<ExplainOptions> kExplainRows[] = {
    {&ExplainOptions::id, "JOB", "", "The number of the job.", is_optional},
    {&ExplainOptions::id, "id", "N", "The same as JOB."},
};
void ExplainOptions::declare(OptionSet& set) { set.add("Options", kExplainRows, *this); }

int run_explain(ExplainOptions& options) {
  if (options.id.empty())
    throw_error(ErrorCode::invalid_argument, "the number of the job is missing: kolo explain JOB");
  auto database = open_jobs();
  for (const auto& line : jobs::explain(database, parse_job_id(options.id)))
    fmt::print("{}\n", printable_lines(line));
  return 0;
}

struct StatsOptions {
  std::string workflow;
  void declare(OptionSet& set);
};
constexpr Option<StatsOptions> kStatsRows[] = {
    {&StatsOptions::workflow, "wf", "NAME",
     "Count only jobs of this workflow, or of a pattern: 'TEST*'.", aliases("--wf-filter")},
};
void StatsOptions::declare(OptionSet& set) { set.add("Options", kStatsRows, *this); }

int run_stats(StatsOptions& options) {
  auto database = open_jobs();
  const auto stats = jobs::statistics(database, options.workflow);
  for (const auto& [state, count] : stats.states)
    fmt::print("{:<18} {}\n", jobs::to_string(state), count);
  if (stats.runs > 0) {
    fmt::print("\n{} in {:.1f} s: {:.2f} jobs finished per second\n", counted(stats.runs, "run"),
               stats.seconds(), stats.jobs_per_second());
    fmt::print("{:.2f} nodes in use on average\n", stats.nodes_in_use());
    fmt::print("median: {:.3f} s from READY to RUNNING, {:.3f} s of a run\n", stats.median_wait,
               stats.median_run);
  }
  if (!stats.errors.empty()) fmt::print("\nerrors:\n");
  for (const auto& [what, count] : stats.errors) fmt::print("{:>6}  {}\n", count, printable(what));
  return 0;
}

struct LogOptions {
  bool follow = false;
  std::string id;
  void declare(OptionSet& set);
};
constexpr Option<LogOptions> kLogRows[] = {
    {&LogOptions::id, "JOB", "",
     "Print the output of the job with this number, instead of the log of the newest launch.",
     is_optional},
    {&LogOptions::id, "id", "N", "The same as JOB."},
    {&LogOptions::follow, "follow", "", "Keep printing new lines as they are written.",
     aliases("-f")},
};
void LogOptions::declare(OptionSet& set) { set.add("Options", kLogRows, *this); }

/// The output of a job, or the log of the newest launch.
fs::path log_file(jobs::JobDatabase& database, const std::string& id) {
  if (!id.empty()) {
    const auto job = database.job(parse_job_id(id));
    auto file = database.folder_of(job) / (job.name + ".out");
    if (!fs::exists(file))
      throw_error(ErrorCode::not_found,
                  "job {0} ({1}) has no output in {2}: it is {3}; `kolo explain {0}` says why", id,
                  job.name, file.string(), jobs::to_string(job.state));
    return file;
  }
  auto logs = launcher_logs(database.folder());
  if (logs.empty())
    throw_error(ErrorCode::not_found,
                "there is no log in {}: no launcher has run yet; `kolo launcher` starts one",
                (database.folder() / "log").string());
  return std::move(logs.back());
}

int run_log(LogOptions& options) {
  if (jobs_folder().empty())
    throw_error(ErrorCode::failed_precondition,
                "no database of jobs is active (KOLO_DB is not set, and there is none in this "
                "folder): eval \"$(kolo activate DIR)\" chooses one. What a trial of a study "
                "printed is in its folder, ~/kolo_results/STUDY/TRIAL/stdout");
  auto database = open_jobs();
  const fs::path file = log_file(database, options.id);
  const Fd log(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!log.valid()) throw_errno("cannot read {}", file.string());
  for (;;) {
    std::array<char, 65536> chunk;
    const ssize_t got = ::read(log.get(), chunk.data(), chunk.size());
    if (got > 0)
      write_all(STDOUT_FILENO, {chunk.data(), static_cast<std::size_t>(got)}, "the log");
    else if (!options.follow)
      return 0;
    else
      std::this_thread::sleep_for(200ms);
  }
}

}  // namespace

constinit const Command kExplain{
    .name = "explain",
    .summary = "Tell why a job does not run",
    .examples = "kolo explain 7\n",
    .options = declared<ExplainOptions>,
    .run = run_declared<ExplainOptions, run_explain>,
};

constinit const Command kStats{
    .name = "stats",
    .summary = "Print throughput, utilisation and errors of jobs",
    .examples = "kolo stats --wf TEST\n",
    .options = declared<StatsOptions>,
    .run = run_declared<StatsOptions, run_stats>,
};

constinit const Command kLog{
    .name = "log",
    .summary = "Print the log of the newest launch, or the output of a job",
    .examples = "kolo log -f\nkolo log 7\n",
    .options = declared<LogOptions>,
    .run = run_declared<LogOptions, run_log>,
};

}  // namespace kolo::app
