// How fast jobs are: `scripts/bench jobs`.
//
//   jobs_bench --kolo PROGRAM [--slurm yes] [--quick] [--json FILE] [--only rates|latency|database]
//
// /bin/true as a job is the worst case: all there is to see is kolo's own cost. Peers do the same
// in the same run: a bare posix_spawn loop with two workers (the limit), GNU parallel, Slurm (if
// the caller has started one: --slurm yes).
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/errors.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "conformance/store/postgres_server.h"
#include "jobs/database/leases.h"
#include "kolo/jobs.h"
#include "support/arguments.h"
#include "support/median.h"
#include "support/memory_directory.h"
#include "support/ratios.h"

extern "C" char** environ;

namespace {

using namespace kolo;
using namespace kolo::jobs;

struct Settings {
  std::string kolo;
  bool slurm = false, quick = false;
  /// For everything that is written, removed at the end: for minutes after a file was removed
  /// ext4 makes new ones more slowly, so one round would disturb the next.
  std::filesystem::path scratch;

  std::filesystem::path memory;  ///< the same, in memory

  [[nodiscard]] std::filesystem::path new_folder() const { return new_folder_in(scratch); }
  [[nodiscard]] static std::filesystem::path new_folder_in(const std::filesystem::path& place) {
    static int count = 0;
    return place / std::to_string(count++);
  }
};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void expect(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "jobs_bench: %s\n", what.c_str());
  std::exit(1);
}

std::vector<Job> noop_jobs(int count) {
  Job job;
  job.name = "noop";
  job.workflow = "bench";
  job.application = "true";
  return std::vector<Job>(static_cast<std::size_t>(count), job);
}

JobDatabase new_database(const std::filesystem::path& folder, const std::string& url = {}) {
  auto jobs = JobDatabase::init(folder, url);
  jobs.set_application({.name = "true", .executable = "/bin/true"});
  return jobs;
}

// --- rates of /bin/true, per second ------------------------------------------------------------

double spawn_rate(int count) {
  std::atomic<int> left{count};
  const double begin = seconds();
  std::vector<std::thread> workers;
  for (int i = 0; i < 2; ++i)
    workers.emplace_back([&left] {
      char program[] = "/bin/true";
      char* argv[] = {program, nullptr};
      while (left-- > 0) {
        pid_t pid = 0;
        expect(::posix_spawn(&pid, program, nullptr, nullptr, argv, environ) == 0, "posix_spawn");
        ::waitpid(pid, nullptr, 0);
      }
    });
  for (auto& worker : workers) worker.join();
  return count / (seconds() - begin);
}

/// From the start of the launcher, when all jobs are READY, to its end, when all are JOB_FINISHED.
double kolo_rate(const Settings& settings, const std::filesystem::path& place, int count) {
  auto jobs = new_database(Settings::new_folder_in(place));
  jobs.create(noop_jobs(count));
  ::setenv("KOLO_DB", jobs.folder().c_str(), 1);
  const double begin = seconds();
  const auto result = run_command(
      {settings.kolo, "launcher", "--nodes", "2", "--cpus-per-node", "1", "--idle-seconds", "0"},
      Deadline::after(std::chrono::seconds(300)));
  const double taken = seconds() - begin;
  expect(result.ok(), "the launcher: " + result.errors);
  const auto counts = jobs.count_by_state();
  expect(counts.size() == 1 && counts[0].state == JobState::job_finished && counts[0].jobs == count,
         "not all jobs have finished");
  return count / taken;
}

double command_rate(const std::string& command, int count) {
  const double begin = seconds();
  const auto result =
      run_command({"bash", "-c", command}, Deadline::after(std::chrono::seconds(300)));
  expect(result.ok(), command + ": " + result.errors);
  return count / (seconds() - begin);
}

// --- the database alone ---------------------------------------------------------------------

double create_rate(const Settings& settings, const std::string& url, int count) {
  auto jobs = new_database(settings.new_folder(), url);
  const auto many = noop_jobs(count);
  const double begin = seconds();
  jobs.create(many);
  const double taken = seconds() - begin;
  expect(jobs.count_by_state()[0].jobs == count, "not all jobs were created");
  return count / taken;
}

/// Takes `count` jobs and finishes them, in groups as a launcher does; what was created before is
/// taken first.
void finish(Leases& leases, int count) {
  const std::vector<Step> steps = {
      {JobState::staged_in, 1, ""},     {JobState::preprocessed, 1, ""},
      {JobState::running, 1, "on x"},   {JobState::run_done, 1, ""},
      {JobState::postprocessed, 1, ""}, {JobState::job_finished, 1, ""}};
  while (count > 0) {
    const auto taken = leases.take({.single = std::min(count, 200), .nodes = 1, .cores = 1});
    expect(!taken.empty(), "there are too few jobs");
    std::vector<Changes::Chain> chains;
    for (const auto& one : taken)
      chains.push_back({.id = one.job.id,
                        .from = JobState::ready,
                        .steps = steps,
                        .hold = one.hold,
                        .release = true,
                        .return_code = 0});
    for (const bool written : leases.write(chains)) expect(written, "a job was not written");
    count -= static_cast<int>(taken.size());
  }
}

/// A database with so many jobs in it, half of them ended and half of them waiting.
class FilledDatabase {
 public:
  FilledDatabase(const Settings& settings, int size)
      : jobs_(new_database(settings.new_folder())), leases_(jobs_, 3600, "{}") {
    for (int made = 0; made < size; made += 1000) jobs_.create(noop_jobs(1000));
    finish(leases_, size / 2);
  }

  /// Measures what it takes to create, take and finish a job.
  void measure() {
    constexpr int kJobs = 1000;
    const double begin = seconds();
    for (int made = 0; made < kJobs; made += 100) jobs_.create(noop_jobs(100));
    finish(leases_, kJobs);
    rounds_.push_back((seconds() - begin) / kJobs);
  }
  [[nodiscard]] double seconds_per_job() const { return bench::median(rounds_); }

 private:
  JobDatabase jobs_;
  Leases leases_;
  std::vector<double> rounds_;
};

/// From before the call that creates a job to the moment its process says that it runs.
double submit_to_running_ms(const Settings& settings, int count) {
  auto jobs = new_database(settings.new_folder());
  jobs.set_application({.name = "clock", .executable = "date +%s.%N"});
  SpawnOptions options;
  options.argv = {settings.kolo, "launcher", "--nodes", "2", "--persistent"};
  ::setenv("KOLO_DB", jobs.folder().c_str(), 1);
  options.environment = current_environment();
  const pid_t launcher = spawn(options);
  std::vector<double> waits;
  for (int i = 0; i <= count; ++i) {
    Job job = noop_jobs(1)[0];
    job.application = "clock";
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // it is idle again
    const double before =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    job.id = jobs.create(job);
    const double until = seconds() + 20;
    while (!is_end(jobs.job(job.id).state)) {
      expect(seconds() < until, "a job was not run");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const double started = std::stod(read_file(jobs.folder_of(job) / "noop.out"));
    if (i > 0) waits.push_back((started - before) * 1000);  // the first waits for the launcher
  }
  ::kill(launcher, SIGTERM);
  ::waitpid(launcher, nullptr, 0);
  return bench::median(waits);
}

void print_value(const std::string& name, double value, const char* unit) {
  std::printf("%-28s %12.1f %s\n", name.c_str(), value, unit);
  std::fflush(stdout);
}

void rates(const Settings& settings, bench::Ratios& ratios) {
  const int jobs = settings.quick ? 1000 : 5000;
  std::vector<double> bare, in_memory, on_disk;
  // In turns, so that whatever else the machine does hits all.
  for (int round = 0; round < 3; ++round) {
    bare.push_back(spawn_rate(jobs));
    in_memory.push_back(kolo_rate(settings, settings.memory, jobs));
    on_disk.push_back(kolo_rate(settings, settings.scratch, jobs));
  }
  print_value("spawn loop, 2 workers", bench::median(bare), "/s");
  print_value("kolo launcher, 2 nodes", bench::median(on_disk), "/s");
  print_value("  with its files in memory", bench::median(in_memory), "/s");
  ratios.print("noop_jobs_vs_spawn", bench::median(on_disk) / bench::median(bare), ">=", 0.7);
  ratios.print("noop_jobs_vs_spawn_memory", bench::median(in_memory) / bench::median(bare),
               ">=", 0.7);
  if (std::system("command -v parallel >/dev/null") == 0) {
    const int count = jobs / 5;
    const double rate = command_rate(
        "seq " + std::to_string(count) + " | parallel --will-cite -j2 /bin/true {} '>/dev/null'",
        count);
    print_value("GNU parallel -j2", rate, "/s");
    ratios.print("noop_jobs_vs_parallel", bench::median(on_disk) / rate, ">=", 3);
  } else {
    std::printf("GNU parallel is not installed: left out\n");
  }
  if (settings.slurm) {
    const int count = settings.quick ? 40 : 200;
    const double rate = command_rate("sbatch --wait --output=/dev/null --array=1-" +
                                         std::to_string(count) + " --wrap=/bin/true >/dev/null",
                                     count);
    print_value("Slurm array", rate, "/s");
    ratios.print("noop_jobs_vs_slurm", bench::median(on_disk) / rate, ">=", 20);
  } else {
    std::printf("Slurm does not run here: left out\n");
  }
}

void database(const Settings& settings, bench::Ratios& ratios) {
  const int count = settings.quick ? 5000 : 20000;
  std::vector<double> rounds;
  for (int round = 0; round < 3; ++round) rounds.push_back(create_rate(settings, "", count));
  const double sqlite = bench::median(rounds);
  print_value("create, SQLite", sqlite, "/s");
  double least = sqlite;
  if (auto server = test::PostgresServer::start_new()) {
    rounds.clear();
    for (int round = 0; round < 3; ++round) {
      store::open_database(server->url())
          ->execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
      rounds.push_back(create_rate(settings, server->url(), count));
    }
    print_value("create, PostgreSQL", bench::median(rounds), "/s");
    least = std::min(least, bench::median(rounds));
  } else {
    std::printf("PostgreSQL is not installed: left out\n");
  }
  ratios.print("create_jobs_per_s", least, ">=", 20000);
  FilledDatabase small(settings, 1000), large(settings, settings.quick ? 20000 : 100000);
  for (int round = 0; round < 9; ++round) {
    small.measure();
    large.measure();
  }
  print_value("a job's database at 1,000", small.seconds_per_job() * 1e6, "us");
  print_value(settings.quick ? "a job's database at 20,000" : "a job's database at 100,000",
              large.seconds_per_job() * 1e6, "us");
  ratios.print(settings.quick ? "growth_20k" : "growth_100k",
               large.seconds_per_job() / small.seconds_per_job(), "<=", 1.5);
}

}  // namespace

int main(int argc, char** argv) try {
  const bench::Arguments arguments(argc, argv, "jobs_bench", {"kolo", "slurm", "only", "json"});
  const TempDir scratch("kolo-bench");
  const bench::MemoryDirectory memory(scratch.path());
  const Settings settings{.kolo = arguments["kolo"],
                          .slurm = !arguments["slurm"].empty(),
                          .quick = arguments.quick(),
                          .scratch = scratch.path(),
                          .memory = memory.path()};
  expect(!settings.kolo.empty(), "--kolo PROGRAM is needed");
  const auto wants = [&](const char* part) { return bench::is_wanted(part, arguments["only"]); };
  bench::Ratios ratios;
  if (wants("rates")) rates(settings, ratios);
  if (wants("latency"))
    ratios.print("submit_to_running_ms", submit_to_running_ms(settings, settings.quick ? 20 : 100),
                 "<=", 20);
  if (wants("database")) database(settings, ratios);
  ratios.write_json(arguments["json"]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "jobs_bench: %s\n", error.what());
  return 1;
}
