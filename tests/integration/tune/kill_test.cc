// kill -9 of the controller, its keeper, its trials, their coordinators and ranks, two hundred
// times at random instants.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "base/files.h"
#include "base/subprocess.h"
#include "integration/tune/leftovers.h"
#include "kolo/random.h"
#include "store/study_store.h"
#include "support/scale.h"
#include "tune/study/study_reader.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

struct Case {
  const char* mode;  // of tune_program
  int kills;
  int samples;                        // at first, and
  int more;                           // so many more whenever all of them have ended
  std::uint32_t least_us, spread_us;  // between kills
};
/// Sanitizers make everything take longer.
constexpr std::uint32_t kSlower = kSanitized ? 4 : 1;
// A ring takes longer to come up than a process.
constexpr Case kCases[] = {{"slow", 150, 120, 40, 5000, 60'000},
                           {"slowranks", 50, 12, 4, 20'000, 200'000}};

bool is_rank(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid));
  const std::string variables{std::istreambuf_iterator<char>(file), {}};
  return variables.find("KOLO_TRIAL_ROLE=rank") != std::string::npos;
}

class TuneKill : public testing::TestWithParam<Case> {
 protected:
  TuneKill() {
    std::filesystem::create_directory(temporary_);
    ::setenv("TMPDIR", temporary_.c_str(), 1);
  }
  ~TuneKill() override { ::unsetenv("TMPDIR"); }

  pid_t start(const std::string& study, int samples) {
    SpawnOptions options;
    options.argv = {KOLO_TUNE_PROGRAM, scratch_.path().string(), study, GetParam().mode,
                    std::to_string(samples)};
    options.environment = current_environment();
    const Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    options.standard_output = null.get();
    return spawn(options);
  }
  static bool has_ended(pid_t pid, int& status) { return ::waitpid(pid, &status, WNOHANG) == pid; }

  tune::Analysis read(const std::string& study) {
    auto database = store::open_database((scratch_.path() / "kolo.db").string());
    store::StudyStore store(*database);
    return tune::read_study(store, study);
  }

  TempDir scratch_{"kolo-kill"};
  const fs::path temporary_ = scratch_.path() / "tmp";
};
INSTANTIATE_TEST_SUITE_P(Trials, TuneKill, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.mode); });

TEST_P(TuneKill, NothingIsLostWhoeverIsKilledAtAnyInstant) {
  Random random(2024);
  const Case& the = GetParam();
  int kills = 0, controllers = 0, ranks = 0, samples = the.samples;
  const Deadline deadline = Deadline::after(150s);
  while (kills < the.kills) {
    ASSERT_FALSE(deadline.passed()) << kills << " kills";
    const pid_t controller = start("killed", samples);
    for (;;) {
      // No event to wait for: the instant shall be anyone's.
      ::usleep(static_cast<useconds_t>(kSlower * (the.least_us + random.below(the.spread_us))));
      int status = 0;
      if (has_ended(controller, status)) {
        ASSERT_EQ(status, 0);
        samples += the.more;  // a finished study is extended
        break;
      }
      const auto all = family(controller);
      const auto kind = random.below(3);
      const bool the_controller = kind == 0 || all.size() == 1;
      pid_t victim = the_controller ? controller : all[1 + random.below(all.size() - 1)];
      // Often a rank, if there is one: they are few among many.
      if (kind == 1)
        for (const pid_t one : all) victim = is_rank(one) ? one : victim;
      if (is_rank(victim)) ++ranks;
      ::kill(victim, SIGKILL);
      ++kills;
      if (!the_controller) continue;
      ++controllers;
      ::waitpid(controller, &status, 0);
      break;
    }
  }
  EXPECT_GT(controllers, the.kills / 5);
  if (std::string_view(the.mode) == "slowranks") {
    EXPECT_GT(ranks, the.kills / 20);
  }
  const auto last = run_command(
      {KOLO_TUNE_PROGRAM, scratch_.path().string(), "killed", the.mode, std::to_string(samples)},
      Deadline::after(60s));
  EXPECT_EQ(last.output, fmt::format("{} trials, 0 errors\n", samples)) << last.errors;
  EXPECT_TRUE(all_gone(scratch_.path().string(), Deadline::after(20s)));
  for (const auto& entry : fs::directory_iterator(temporary_)) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("kolo")) << entry.path();
  }

  // The same study, left alone.
  const auto calm = run_command(
      {KOLO_TUNE_PROGRAM, scratch_.path().string(), "calm", "plain", std::to_string(samples)},
      Deadline::after(60s));
  ASSERT_TRUE(calm.ok()) << calm.errors;
  const auto killed = read("killed"), whole = read("calm");
  ASSERT_EQ(killed.trials().size(), whole.trials().size());
  for (std::size_t i = 0; i < whole.trials().size(); ++i) {
    const auto& trial = killed.trials()[i];
    EXPECT_EQ(trial.status, tune::TrialStatus::terminated) << trial.error;
    EXPECT_EQ(trial.config, whole.trials()[i].config);
    ASSERT_EQ(trial.results.size(), 4U) << i;
    for (std::size_t e = 0; e < 4; ++e) {
      EXPECT_EQ(trial.results[e].at_path("epoch").as_integer(), static_cast<std::int64_t>(e) + 1);
      EXPECT_EQ(trial.results[e].at_path("loss"), whole.trials()[i].results[e].at_path("loss"));
    }
    // Every checkpoint that is there is known, and whole.
    std::set<fs::path> known;
    for (const auto& checkpoint : trial.checkpoints) {
      known.insert(checkpoint.path);
      EXPECT_EQ(read_file(checkpoint.path / "epoch"), std::to_string(checkpoint.iteration));
    }
    for (const auto& entry : fs::directory_iterator(trial.directory))
      if (entry.is_directory()) {
        EXPECT_TRUE(known.contains(entry.path())) << entry.path();
      }
    std::ifstream lines(trial.directory / "result.json");
    EXPECT_EQ(std::count(std::istreambuf_iterator<char>(lines), {}, '\n'), 4) << trial.directory;
  }
}

}  // namespace
}  // namespace kolo::test
