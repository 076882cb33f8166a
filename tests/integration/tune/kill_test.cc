// kill -9 of the controller, its keeper and its trials, two hundred times at random instants.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "base/errors.h"
#include "base/files.h"
#include "base/random.h"
#include "base/subprocess.h"
#include "store/study_store.h"
#include "tune/study_reader.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr int kKills = 200;
constexpr int kSamplesAtFirst = 120;

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::ifstream list(fmt::format("/proc/{0}/task/{0}/children", pid));
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

/// The controller and everything below it.
std::vector<pid_t> family(pid_t pid) {
  std::vector<pid_t> all{pid};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const pid_t child : children_of(all[i])) all.push_back(child);
  return all;
}

class TuneKill : public testing::Test {
 protected:
  pid_t start(const std::string& study, int samples) {
    SpawnOptions options;
    options.argv = {KOLO_TUNE_PROGRAM, scratch_.path().string(), study, "slow",
                    std::to_string(samples)};
    options.environment = current_environment();
    const Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    options.standard_output = null.get();
    Spawned program = spawn(options);
    program.wait_until_running();
    return program.pid();
  }
  static bool has_ended(pid_t pid, int& status) { return ::waitpid(pid, &status, WNOHANG) == pid; }

  tune::Analysis read(const std::string& study) {
    auto database = store::open_database((scratch_.path() / "kolo.db").string());
    store::StudyStore store(*database);
    return tune::read_study(store, study);
  }

  std::vector<std::string> leftovers() {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string pid = entry.path().filename();
      if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
      try {
        if (read_file(entry.path() / "cmdline").find(scratch_.path().string()) != std::string::npos)
          found.push_back(pid);
      } catch (const Error&) {
        // It is gone.
      }
    }
    return found;
  }

  TempDir scratch_{"kolo-kill"};
};

TEST_F(TuneKill, NothingIsLostWhoeverIsKilledAtAnyInstant) {
  Random random(2024);
  int kills = 0, controllers = 0, samples = kSamplesAtFirst;
  const Deadline deadline = Deadline::after(150s);
  while (kills < kKills) {
    ASSERT_FALSE(deadline.passed()) << kills << " kills";
    const pid_t controller = start("killed", samples);
    for (;;) {
      ::usleep(static_cast<useconds_t>(5000 + random.below(60'000)));
      int status = 0;
      if (has_ended(controller, status)) {
        ASSERT_EQ(status, 0);
        samples += 40;  // a finished study is extended
        break;
      }
      const auto all = family(controller);
      const bool the_controller = random.below(2) == 0 || all.size() == 1;
      const pid_t victim = the_controller ? controller : all[1 + random.below(all.size() - 1)];
      ::kill(victim, SIGKILL);
      ++kills;
      if (!the_controller) continue;
      ++controllers;
      ::waitpid(controller, &status, 0);
      break;
    }
  }
  EXPECT_GT(controllers, kKills / 4);
  const auto last = run_command(
      {KOLO_TUNE_PROGRAM, scratch_.path().string(), "killed", "slow", std::to_string(samples)},
      Deadline::after(60s));
  EXPECT_EQ(last.output, fmt::format("{} trials, 0 errors\n", samples)) << last.errors;
  for (int i = 0; i < 300 && !leftovers().empty(); ++i) ::usleep(10'000);
  EXPECT_TRUE(leftovers().empty());

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
