// scripts/bench tune: what a study costs, beside Optuna on the same machine with the same trivial
// objective (x², one parameter, random search).
//
//   tune_bench --optuna bench/tune_optuna_peer.py [--quick] [--only a,b] [--json FILE]
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"
#include "kolo/tune.h"
#include "support/arguments.h"
#include "support/median.h"
#include "support/memory_directory.h"
#include "support/ratios.h"

extern "C" char** environ;

namespace {

using namespace kolo;
using tune::Config;
using tune::Session;
using Clock = std::chrono::steady_clock;

struct BenchOptions {
  bool quick = false;
  /// For everything that is written, removed at the end: for minutes after a file was removed
  /// ext4 makes new ones more slowly, so one row would disturb the next.
  std::string scratch;
  std::string memory;  ///< the same, in memory
  std::string optuna;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

tune::Options study(const std::string& scratch, const std::string& name) {
  static int count = 0;
  tune::Options options;
  options.name = name;
  options.local_dir = scratch + "/" + std::to_string(count++);
  options.metric = "y";
  options.mode = "min";
  options.config = {{"x", tune::uniform(-10, 10)}};
  options.search_alg.name = "random";
  options.verbose = 0;
  options.loggers = {};  // Optuna writes no files beside its database either
  options.total_resources = tune::Resources{.cpu = 2};
  return options;
}

tune::Value square(const Config& config) {
  const double x = config.at_path("x").as_number();
  return tune::Value{{"y", x * x}};
}

/// Seconds for so many trivial trials, stored in SQLite on disk.
double thread_trials(const BenchOptions& bench, std::int64_t trials,
                     const std::vector<std::string>& loggers) {
  auto options = study(bench.scratch, "trivial");
  options.num_samples = trials;
  options.loggers = loggers;
  const auto start = Clock::now();
  const auto analysis = tune::run(square, options);
  const double seconds = seconds_since(start);
  if (static_cast<std::int64_t>(analysis.trials().size()) != trials ||
      analysis.best_result().at_path("y").as_number() > 1)
    std::fprintf(stderr, "tune_bench: WRONG result\n");
  return seconds;
}

/// Optuna's seconds per trial: "sqlite" or "memory", with n_jobs 2.
double optuna_seconds(const BenchOptions& options, const std::string& storage, int trials) {
  if (options.optuna.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto result =
      run_command({"/usr/bin/python3", options.optuna, storage, std::to_string(trials), "2"},
                  Deadline::after(std::chrono::minutes(3)));
  if (!result.ok()) {
    std::printf("MISSING optuna: %s\n", result.errors.c_str());
    return std::numeric_limits<double>::quiet_NaN();
  }
  return std::stod(result.output);
}

double kolo_per_trial(const BenchOptions& options) {
  static const double seconds = [&] {
    const std::int64_t trials = options.quick ? 3000 : 10'000;
    double best = 1e9;
    for (int round = 0; round < 3; ++round)
      best = std::min(best, thread_trials(options, trials, {}));
    return best / static_cast<double>(trials);
  }();
  return seconds;
}

double trials_thread_vs_optuna_sqlite(const BenchOptions& options) {
  const double other = optuna_seconds(options, "sqlite", options.quick ? 50 : 200);
  const double own = kolo_per_trial(options);
  std::printf("  per trial: kolo in SQLite %.4f ms, Optuna in SQLite %.2f ms\n", own * 1e3,
              other * 1e3);
  return own / other;
}

double trials_thread_vs_optuna_memory(const BenchOptions& options) {
  const double other = optuna_seconds(options, "memory", options.quick ? 1000 : 5000);
  const double own = kolo_per_trial(options);
  std::printf("  per trial: kolo in SQLite %.4f ms, Optuna in memory %.4f ms\n", own * 1e3,
              other * 1e3);
  return own / other;
}

double trials_thread_10k_s(const BenchOptions& options) {
  const std::int64_t trials = options.quick ? 3000 : 10'000;
  const double files = thread_trials(options, trials, {"json", "csv", "tensorboard"});
  std::printf("  %lld trials with all of Tune's files: %.2f s\n", static_cast<long long>(trials),
              files);
  return kolo_per_trial(options) * 10'000;
}

/// The same program, started and waited for.
double bare_spawn_seconds(int times) {
  std::string self = "/proc/self/exe", noop = "--noop";
  char* argv[] = {self.data(), noop.data(), nullptr};
  const auto start = Clock::now();
  for (int i = 0; i < times; ++i) {
    pid_t child = 0;
    if (::posix_spawn(&child, self.c_str(), nullptr, nullptr, argv, environ) != 0) return -1;
    int status = 0;
    ::waitpid(child, &status, 0);
  }
  return seconds_since(start) / times;
}

/// Seconds per trial that is this program again.
double process_trials(std::int64_t trials, const std::string& scratch) {
  auto options = study(scratch, "process");
  options.num_samples = trials;
  options.executor = tune::Executor::process;
  options.max_concurrent_trials = 1;
  const auto start = Clock::now();
  tune::run(square, options);
  return seconds_since(start) / static_cast<double>(trials);
}

/// Seconds to make what every such trial leaves: a folder with params.json, stdout and stderr.
double files_seconds(const std::string& scratch, int times) {
  const auto start = Clock::now();
  for (int i = 0; i < times; ++i) {
    const auto folder = std::filesystem::path(scratch) / ("files" + std::to_string(i));
    std::filesystem::create_directories(folder);
    for (const char* name : {"params.json", "stdout", "stderr"}) std::ofstream(folder / name);
  }
  return seconds_since(start) / times;
}

/// In turns with the bare program, so that both see the same machine.
double process_overhead_ms(const BenchOptions& options, const std::string& place) {
  constexpr int kRounds = 5;
  const int trials = options.quick ? 40 : 200;
  std::vector<double> bare, whole;
  for (int round = 0; round < kRounds; ++round) {
    bare.push_back(bare_spawn_seconds(trials));
    // In a process of its own, of which each trial is a repetition.
    const auto result = run_command({"/proc/self/exe", "--process-trials", std::to_string(trials),
                                     place + "/process" + std::to_string(round)},
                                    Deadline::after(std::chrono::minutes(2)));
    if (!result.ok()) {
      std::printf("MISSING process trials: %s\n", result.errors.c_str());
      return std::numeric_limits<double>::quiet_NaN();
    }
    whole.push_back(std::stod(result.output));
  }
  std::printf(
      "  per trial: %.2f ms, bare posix_spawn and wait %.2f ms, its folder and files %.2f ms\n",
      bench::median(whole) * 1e3, bench::median(bare) * 1e3, files_seconds(place, trials) * 1e3);
  return (bench::median(whole) - bench::median(bare)) * 1e3;
}

double trials_process_overhead_ms(const BenchOptions& options) {
  return process_overhead_ms(options, options.scratch);
}

double trials_process_overhead_memory_ms(const BenchOptions& options) {
  return process_overhead_ms(options, options.memory);
}

double reports_per_s(const BenchOptions& options) {
  auto how = study(options.scratch, "reports");
  constexpr std::int64_t kTrials = 16;
  const std::int64_t each = options.quick ? 2000 : 8000;
  how.num_samples = kTrials;
  how.total_resources = tune::Resources{.cpu = kTrials};
  how.scheduler = tune::ASHAScheduler({{"max_t", each + 1}, {"grace_period", 1}});
  const auto start = Clock::now();
  const auto analysis = tune::run(
      [each](const Config&, Session& session) {
        for (std::int64_t i = 1; i <= each; ++i)
          session.report({{"y", 1.0 / static_cast<double>(i)}, {"epoch", i}});
      },
      how);
  const double seconds = seconds_since(start);
  const auto stored = analysis.stats().at_path("reports").as_integer();
  if (stored != kTrials * each)
    std::fprintf(stderr, "tune_bench: WRONG: %lld reports\n", static_cast<long long>(stored));
  return static_cast<double>(stored) / seconds;
}

double idle_slots(const BenchOptions& options) {
  auto how = study(options.scratch, "idle");
  const std::int64_t trials = options.quick ? 200 : 1000;
  how.num_samples = trials;
  how.loggers = {"json", "csv", "tensorboard"};
  std::atomic<std::int64_t> busy_ns{0};
  const auto start = Clock::now();
  tune::run(
      [&](const Config& config) {
        const auto began = Clock::now();
        std::this_thread::sleep_until(began + std::chrono::milliseconds(50));
        busy_ns += (Clock::now() - began).count();
        return square(config);
      },
      how);
  const double slot_time = 2 * seconds_since(start);
  return 1 - static_cast<double>(busy_ns) * 1e-9 / slot_time;
}

double resume_100k_s(const BenchOptions& options) {
  auto how = study(options.scratch, "large");
  const std::int64_t trials = options.quick ? 20'000 : 100'000;
  how.num_samples = trials;
  how.resume = tune::Resume::automatic;
  how.total_resources = tune::Resources{.cpu = 16};
  tune::run(square, how);
  how.num_samples = trials + 1;
  std::atomic<double> until_start{-1};
  const auto start = Clock::now();
  const auto analysis = tune::run(
      [&](const Config& config) {
        until_start = seconds_since(start);
        return square(config);
      },
      how);
  if (static_cast<std::int64_t>(analysis.trials().size()) != trials + 1)
    std::fprintf(stderr, "tune_bench: WRONG number of trials\n");
  std::printf("  %lld trials: the next one started after %.3f s\n", static_cast<long long>(trials),
              until_start.load());
  return until_start * 100'000 / static_cast<double>(trials);
}

struct Row {
  const char* name;
  double (*measure)(const BenchOptions& options);
  const char* op;
  double goal;
};

constexpr Row kRows[] = {
    {"trials_thread_vs_optuna_sqlite", trials_thread_vs_optuna_sqlite, "<=", 0.01},
    {"trials_thread_vs_optuna_memory", trials_thread_vs_optuna_memory, "<=", 2},
    {"trials_thread_10k_s", trials_thread_10k_s, "<=", 3},
    {"trials_process_overhead_ms", trials_process_overhead_ms, "<=", 0.8},
    {"trials_process_overhead_memory_ms", trials_process_overhead_memory_ms, "<=", 0.8},
    {"reports_per_s", reports_per_s, ">=", 20'000},
    {"idle_slots", idle_slots, "<=", 0.02},
    {"resume_100k_s", resume_100k_s, "<=", 2},
};

}  // namespace

int main(int argc, char** argv) {
  BenchOptions options;
  if (argc > 1 && argv[1] == std::string("--noop")) return 0;
  if (argc > 3 && argv[1] == std::string("--process-trials")) {
    std::printf("%.9f\n", process_trials(std::atoi(argv[2]), argv[3]));
    return 0;
  }
  const bench::Arguments arguments(argc, argv, "tune_bench", {"json", "optuna", "only"});
  options.quick = arguments.quick();
  options.optuna = arguments["optuna"];
  const TempDir scratch("kolo-bench");
  options.scratch = scratch.path().string();
  const bench::MemoryDirectory memory(scratch.path());
  options.memory = memory.path().string();
  bench::Ratios ratios;
  for (const Row& row : kRows)
    if (bench::is_wanted(row.name, arguments["only"]))
      ratios.print(row.name, row.measure(options), row.op, row.goal);
  ratios.write_json(arguments["json"]);
  return 0;
}
