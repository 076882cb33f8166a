// How fast jobs are: `scripts/bench jobs`.
//
//   jobs_bench --kolo PROGRAM [--slurm] [--quick] [--json FILE] [--only rates|latency|database]
//
// /bin/true as a job is the worst case: all there is to see is kolo's own cost. Peers do the same
// in the same run: a bare posix_spawn loop with two workers (the limit), GNU parallel, Slurm (if
// the caller has started one: --slurm).
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "conformance/store/postgres_server.h"
#include "jobs/leases.h"
#include "kolo/jobs.h"

extern "C" char** environ;

namespace {

using namespace kolo;
using namespace kolo::jobs;

struct Settings {
  std::string kolo;
  bool slurm = false, quick = false;
  std::string json, only;
  [[nodiscard]] bool wants(const char* part) const { return only.empty() || only == part; }
};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
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
double kolo_rate(const Settings& settings, int count) {
  TempDir scratch;
  auto jobs = new_database(scratch.path() / "db");
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

double create_rate(const std::string& url, int count) {
  TempDir scratch;
  auto jobs = new_database(scratch.path() / "db", url);
  const auto many = noop_jobs(count);
  const double begin = seconds();
  jobs.create(many);
  const double taken = seconds() - begin;
  expect(jobs.count_by_state()[0].jobs == count, "not all jobs were created");
  return count / taken;
}

/// Takes `count` jobs and finishes them, in groups as a launcher does; what was created before is
/// taken first.
void finish(JobDatabase& jobs, Leases& leases, int count) {
  const std::vector<Step> steps = {
      {JobState::staged_in, 1, ""},     {JobState::preprocessed, 1, ""},
      {JobState::running, 1, "on x"},   {JobState::run_done, 1, ""},
      {JobState::postprocessed, 1, ""}, {JobState::job_finished, 1, ""}};
  (void)jobs;
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

/// Seconds to create, take and finish a job, with so many jobs in the database, half of them ended
/// and half of them waiting.
double cost_at(int size, int measured) {
  TempDir scratch;
  auto jobs = new_database(scratch.path() / "db");
  Leases leases(jobs, 3600, "{}");
  for (int made = 0; made < size; made += 1000) jobs.create(noop_jobs(1000));
  finish(jobs, leases, size / 2);
  std::vector<double> rounds;
  for (int round = 0; round < 5; ++round) {
    const double begin = seconds();
    for (int made = 0; made < measured; made += 100) jobs.create(noop_jobs(100));
    finish(jobs, leases, measured);
    rounds.push_back((seconds() - begin) / measured);
  }
  return median(rounds);
}

/// From before the call that creates a job to the moment its process says that it runs.
double submit_to_running_ms(const Settings& settings, int count) {
  TempDir scratch;
  auto jobs = new_database(scratch.path() / "db");
  jobs.set_application({.name = "clock", .executable = "date +%s.%N"});
  SpawnOptions options;
  options.argv = {settings.kolo, "launcher", "--nodes", "2", "--persistent"};
  ::setenv("KOLO_DB", jobs.folder().c_str(), 1);
  options.environment = current_environment();
  const Spawned launcher = spawn(options);
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
  ::kill(launcher.pid(), SIGTERM);
  ::waitpid(launcher.pid(), nullptr, 0);
  return median(waits);
}

class Report {
 public:
  void value(const std::string& name, double value, const char* unit) {
    std::printf("%-28s %12.1f %s\n", name.c_str(), value, unit);
    std::fflush(stdout);
    json_[name] = value;
  }
  void ratio(const std::string& name, double value, const char* op, double goal) {
    const bool pass = op[0] == '>' ? value >= goal : value <= goal;
    lines_.push_back({name, value, op, goal, pass});
    json_["RATIO " + name] = value;
  }
  void print() const {
    for (const auto& line : lines_)
      std::printf("RATIO %s %.4g goal %s%g %s\n", line.name.c_str(), line.value, line.op, line.goal,
                  line.pass ? "PASS" : "FALLS-SHORT");
  }
  void write(const std::string& path) const {
    if (!path.empty()) std::ofstream(path) << json_.dump(1) << "\n";
  }

 private:
  struct Line {
    std::string name;
    double value;
    const char* op;
    double goal;
    bool pass;
  };
  std::vector<Line> lines_;
  Json json_ = Json::object();
};

void rates(const Settings& settings, Report& report) {
  const int jobs = settings.quick ? 1000 : 5000;
  std::vector<double> bare, own;
  // In turns, so that whatever else the machine does hits both.
  for (int round = 0; round < 3; ++round) {
    bare.push_back(spawn_rate(jobs));
    own.push_back(kolo_rate(settings, jobs));
  }
  report.value("spawn loop, 2 workers", median(bare), "/s");
  report.value("kolo launcher, 2 nodes", median(own), "/s");
  report.ratio("noop_jobs_vs_spawn", median(own) / median(bare), ">=", 0.5);
  if (std::system("command -v parallel >/dev/null") == 0) {
    const int count = jobs / 5;
    const double rate = command_rate(
        "seq " + std::to_string(count) + " | parallel --will-cite -j2 /bin/true {} '>/dev/null'",
        count);
    report.value("GNU parallel -j2", rate, "/s");
    report.ratio("noop_jobs_vs_parallel", median(own) / rate, ">=", 3);
  } else {
    std::printf("GNU parallel is not installed: left out\n");
  }
  if (settings.slurm) {
    const int count = settings.quick ? 40 : 200;
    const double rate = command_rate("sbatch --wait --output=/dev/null --array=1-" +
                                         std::to_string(count) + " --wrap=/bin/true >/dev/null",
                                     count);
    report.value("Slurm array", rate, "/s");
    report.ratio("noop_jobs_vs_slurm", median(own) / rate, ">=", 20);
  } else {
    std::printf("Slurm does not run here: left out\n");
  }
}

void database(const Settings& settings, Report& report) {
  const int count = settings.quick ? 5000 : 20000;
  std::vector<double> rounds;
  for (int round = 0; round < 3; ++round) rounds.push_back(create_rate("", count));
  const double sqlite = median(rounds);
  report.value("create, SQLite", sqlite, "/s");
  double least = sqlite;
  if (auto server = test::PostgresServer::start_new()) {
    rounds.clear();
    for (int round = 0; round < 3; ++round) {
      store::open_database(server->url())
          ->execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
      rounds.push_back(create_rate(server->url(), count));
    }
    report.value("create, PostgreSQL", median(rounds), "/s");
    least = std::min(least, median(rounds));
  } else {
    std::printf("PostgreSQL is not installed: left out\n");
  }
  report.ratio("create_jobs_per_s", least, ">=", 20000);
  const double small = cost_at(1000, 1000);
  const double large = cost_at(settings.quick ? 20000 : 100000, 1000);
  report.value("a job's database at 1,000", small * 1e6, "us");
  report.value(settings.quick ? "a job's database at 20,000" : "a job's database at 100,000",
               large * 1e6, "us");
  report.ratio(settings.quick ? "growth_20k" : "growth_100k", large / small, "<=", 1.5);
}

}  // namespace

int main(int argc, char** argv) try {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick")
      settings.quick = true;
    else if (argument == "--slurm")
      settings.slurm = true;
    else if (argument == "--kolo" && i + 1 < argc)
      settings.kolo = argv[++i];
    else if (argument == "--only" && i + 1 < argc)
      settings.only = argv[++i];
    else if (argument == "--json" && i + 1 < argc)
      settings.json = argv[++i];
    else
      expect(false, "unknown argument " + argument);
  }
  expect(!settings.kolo.empty(), "--kolo PROGRAM is needed");
  Report report;
  if (settings.wants("rates")) rates(settings, report);
  if (settings.wants("latency")) {
    const double wait = submit_to_running_ms(settings, settings.quick ? 20 : 100);
    report.value("submit to running, median", wait, "ms");
    report.ratio("submit_to_running_ms", wait, "<=", 20);
  }
  if (settings.wants("database")) database(settings, report);
  report.print();
  report.write(settings.json);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "jobs_bench: %s\n", error.what());
  return 1;
}
