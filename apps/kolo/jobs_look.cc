// kolo explain, kolo stats, kolo log: what goes on, and why it does not.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "base/errors.h"
#include "base/fd.h"
#include "base/files.h"
#include "commands.h"
#include "jobs/database/explain.h"
#include "jobs/database/statistics.h"
#include "jobs_database.h"

namespace kolo::app {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// The files in log/, oldest first.
std::vector<fs::path> log_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "log", error))
    if (entry.is_regular_file(error)) files.push_back(entry.path());
  std::sort(files.begin(), files.end(), [](const fs::path& left, const fs::path& right) {
    std::error_code ignored;
    return fs::last_write_time(left, ignored) < fs::last_write_time(right, ignored);
  });
  return files;
}

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
    fmt::print("{}\n", line);
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
    fmt::print("\n{} runs in {:.1f} s: {:.2f} jobs finished per second\n", stats.runs,
               stats.seconds(), stats.jobs_per_second());
    fmt::print("{:.2f} nodes in use on average\n", stats.nodes_in_use());
    fmt::print("median: {:.3f} s from READY to RUNNING, {:.3f} s of a run\n", stats.median_wait,
               stats.median_run);
  }
  if (!stats.errors.empty()) fmt::print("\nerrors:\n");
  for (const auto& [what, count] : stats.errors) fmt::print("{:>6}  {}\n", count, what);
  return 0;
}

struct LogOptions {
  bool follow = false;
  std::string id;
  void declare(OptionSet& set);
};
constexpr Option<LogOptions> kLogRows[] = {
    {&LogOptions::follow, "follow", "", "Keep printing new lines as they are written.",
     aliases("-f")},
    {&LogOptions::id, "id", "N", "Print the output of job N instead."},
};
void LogOptions::declare(OptionSet& set) { set.add("Options", kLogRows, *this); }

/// The output of a job, or the log of the newest launch.
fs::path log_file(jobs::JobDatabase& database, const std::string& id) {
  if (!id.empty()) {
    const auto job = database.job(parse_job_id(id));
    return database.folder_of(job) / (job.name + ".out");
  }
  const auto files = log_files(database.folder());
  if (files.empty())
    throw_error(ErrorCode::not_found, "there is no log in {}; no launcher has run yet",
                (database.folder() / "log").string());
  return files.back();
}

int run_log(LogOptions& options) {
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
    .examples = "kolo log -f\n",
    .options = declared<LogOptions>,
    .run = run_declared<LogOptions, run_log>,
};

}  // namespace kolo::app
