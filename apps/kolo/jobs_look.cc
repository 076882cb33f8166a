// kolo explain, kolo stats, kolo log: what goes on, and why it does not.
#include <fcntl.h>
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
#include "jobs_common.h"
#include "study_settings.h"

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

}  // namespace

int run_command_explain(const Arguments& arguments) {
  constexpr Setting kTable[] = {{"id", "", "", "N", "", "the job"}, kHelpSetting};
  const Options options(kTable, arguments);
  if (options.has("help")) {
    print_options_help("kolo explain JOB", "Says why a job does not run.", {});
    return 0;
  }
  const auto id = options.text("id");
  options.expect_words(id ? 0 : 1, id ? 0 : 1, "kolo explain JOB");
  auto database = open_jobs();
  for (const auto& line : jobs::explain(database, parse_job_id(id ? *id : options.words()[0])))
    fmt::print("{}\n", line);
  return 0;
}

int run_command_stats(const Arguments& arguments) {
  constexpr Setting kTable[] = {
      {"wf", "--wf-filter", "", "PART", "", "jobs whose workflow has this part"}, kHelpSetting};
  const Options options(kTable, arguments);
  if (options.has("help")) {
    print_options_help("kolo stats [OPTIONS]", "Throughput, utilisation and errors.", kTable);
    return 0;
  }
  options.expect_words(0, 0, "kolo stats [--wf PART]");
  auto database = open_jobs();
  const auto stats = jobs::statistics(database, options.text("wf").value_or(""));
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

int run_command_log(const Arguments& arguments) {
  constexpr Setting kTable[] = {{"follow", "-f", "", "", "", "go on as lines come"},
                                {"id", "", "", "N", "", "the output of this job instead"},
                                kHelpSetting};
  const Options options(kTable, arguments);
  if (options.has("help")) {
    print_options_help("kolo log [-f] [--id N]", "Shows the log of the newest launch, or a job's.",
                       kTable);
    return 0;
  }
  options.expect_words(0, 0, "kolo log [-f] [--id N]");
  auto database = open_jobs();
  fs::path file;
  if (const auto id = options.text("id")) {
    const auto job = database.job(parse_job_id(*id));
    file = database.folder_of(job) / (job.name + ".out");
  } else {
    const auto files = log_files(database.folder());
    if (files.empty())
      throw_error(ErrorCode::not_found, "there is no log in {}",
                  (database.folder() / "log").string());
    file = files.back();
  }
  const Fd log(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!log.valid()) throw_errno("cannot read {}", file.string());
  for (;;) {
    std::array<char, 65536> chunk;
    const ssize_t got = ::read(log.get(), chunk.data(), chunk.size());
    if (got > 0)
      write_all(STDOUT_FILENO, {chunk.data(), static_cast<std::size_t>(got)}, "the log");
    else if (!options.has("follow"))
      return 0;
    else
      std::this_thread::sleep_for(200ms);
  }
}

}  // namespace kolo::app
