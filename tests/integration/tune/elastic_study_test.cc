// Studies whose trials change their number of ranks while they run, with the real program: results
// are those of a study with fixed ranks, also when ranks, trials and the study itself are killed.
// KOLO_TEST_KILLS=50 makes the last test a long one.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <set>

#include "base/env.h"
#include "integration/tune/cli_fixture.h"
#include "integration/tune/leftovers.h"
#include "kolo/random.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class ElasticStudy : public TuneCli {
 protected:
  ElasticStudy() { write("space.yaml", "x: {uniform: [0, 1]}\n"); }

  /// `kolo tune` of a study with ASHA, whose decisions do not depend on time.
  [[nodiscard]] std::vector<std::string> command(const std::string& name, int trials,
                                                 const std::vector<std::string>& how) const {
    std::vector<std::string> words{
        KOLO_BINARY,      "tune",
        "--space",        (scratch_.path() / "space.yaml").string(),
        "--name",         name,
        "--metric",       "loss",
        "--mode",         "min",
        "--num-samples",  std::to_string(trials),
        "--search",       "random",
        "--scheduler",    "asha:max_t=9,reduction_factor=3,in_order=true",
        "--max-failures", "-1",
        "--total-cpus",   "4",
        "--quiet"};
    words.insert(words.end(), how.begin(), how.end());
    for (const char* word : {"--", KOLO_ELASTIC_TRIAL, "{x}"}) words.emplace_back(word);
    const std::filesystem::path notes = scratch_.path() / ("notes-" + name);
    std::filesystem::create_directory(notes);
    for (const auto& word :
         {std::string("--notes"), notes.string(), std::string("--pause-us"), pause_us_})
      words.push_back(word);
    return words;
  }

  /// What the trials of a study came to: all that does not depend on time.
  std::vector<std::string> outcomes(const std::string& study) {
    std::vector<std::string> lines;
    for (const auto& trial : trials(study))
      lines.push_back(fmt::format("{} {} {} {}", trial.at("status").dump(),
                                  trial.at("config/x").dump(),
                                  trial.at("training_iteration").dump(), trial.at("sum").dump()));
    return lines;
  }

  /// The sizes of the groups in which steps were taken.
  std::set<int> sizes(const std::string& study) {
    std::set<int> found;
    for (const auto& file :
         std::filesystem::directory_iterator(scratch_.path() / ("notes-" + study))) {
      std::ifstream lines(file.path());
      std::string time, trial;
      for (int rank = 0, size = 0, step = 0; lines >> time >> trial >> rank >> size >> step;)
        found.insert(size);
    }
    return found;
  }

  static std::string trial_of(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/environ", pid));
    const std::string variables{std::istreambuf_iterator<char>(file), {}};
    const auto at = variables.find("KOLO_TRIAL_ID=");
    return at == std::string::npos ? "" : std::string(variables.c_str() + at);
  }

  std::string pause_us_ = "500";  // of a part of a step
};

TEST_F(ElasticStudy, ATrialGoesOnWhenItsHostIsAwayForAMoment) {
  stand_in_for_ssh_that_fails_once();
  const std::string notes = (scratch_.path() / "notes").string();
  std::filesystem::create_directory(notes);
  const auto result = tune({"--hosts", "me@away:2", "--np", "1..2", "--metric", "loss", "--mode",
                            "min", "--name", "away"},
                           {"sh", "-c", std::string(kDiesOnce) + "exec \"$0\" \"$@\"",
                            KOLO_ELASTIC_TRIAL, "{x}", "--notes", notes});
  EXPECT_TRUE(result.ok()) << result.errors;
  EXPECT_EQ(trials("away")[0]["status"], "TERMINATED") << trials("away")[0]["error"];
  EXPECT_EQ(read_file(scratch_.path() / "calls"), "\n\n\n");
}

TEST_F(ElasticStudy, ResultsAreThoseOfFixedRanks) {
  const auto calm = run_command(command("fixed", 6, {"--np", "2"}), Deadline::after(60s));
  ASSERT_TRUE(calm.ok()) << calm.errors;
  const auto expected = outcomes("fixed");
  ASSERT_EQ(expected.size(), 6U);
  EXPECT_EQ(sizes("fixed"), std::set<int>{2});
  // On a slow machine a trial may be over before a rank has come to help: then it takes longer.
  std::set<int> seen;
  for (int pause_us = 500; pause_us < 100'000 && seen.size() < 2; pause_us *= 4) {
    pause_us_ = std::to_string(pause_us);
    const std::string name = "moved-" + pause_us_;
    const auto moved =
        run_command(command(name, 6, {"--np", "1..4", "--reuse-workers"}), Deadline::after(60s));
    ASSERT_TRUE(moved.ok()) << moved.errors;
    EXPECT_EQ(outcomes(name), expected);
    seen.merge(sizes(name));
  }
  EXPECT_EQ(*seen.begin(), 1);
  EXPECT_GT(*seen.rbegin(), 1);
}

TEST_F(ElasticStudy, APlainProgramIsRefusedWithWhatToDo) {
  const auto refused =
      tune({"--np", "1..2", "--metric", "loss", "--mode", "min", "--num-samples", "1"},
           {KOLO_ELASTIC_TRIAL, "{x}", "--plain"});
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(refused.errors, HasSubstr("call kolo::elastic::run() instead"));
  const auto script =
      tune({"--np", "1..2", "--metric", "loss", "--mode", "min", "--num-samples", "1"},
           {"sh", "-c", "echo loss={x}"});
  EXPECT_FALSE(script.ok());
  EXPECT_THAT(script.errors, HasSubstr("does not use kolo::elastic::run()"));
}

TEST_F(ElasticStudy, ARangeThatIsNoneIsRefused) {
  for (const char* np : {"4..1", "0", "1..", "two"}) {
    const auto refused = tune({"--np", np}, {"true"});
    EXPECT_THAT(refused.errors, HasSubstr("a range of them such as 1..4")) << np;
  }
  const auto fixed = tune({"--np", "2", "--reuse-workers"}, {"true"});
  EXPECT_THAT(fixed.errors, HasSubstr("such as 1 to 4"));
}

TEST_F(ElasticStudy, ResultsAreThoseOfTheCalmStudyWhoeverIsKilled) {
  const auto given = environment("KOLO_TEST_KILLS");
  const int kills = given ? std::stoi(*given) : 4;
  const int samples = given ? 30 : 6;
  const auto calm = run_command(command("calm", samples, {"--np", "1..4"}), Deadline::after(300s));
  ASSERT_TRUE(calm.ok()) << calm.errors;

  pause_us_ = "8000";  // a second at least on any machine: several kills
  Random random(7);
  int ranks = 0, whole = 0, controllers = 0;
  const auto again = command("killed", samples, {"--np", "1..4", "--reuse-workers", "--resume"});
  const Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  int status = 0;
  for (bool is_over = false; !is_over;) {
    SpawnOptions options;
    options.argv = again;
    options.environment = current_environment();
    options.standard_output = options.standard_error = null.get();
    const pid_t controller = spawn(options);
    while (!is_over) {
      // No event to wait for: the instant shall be anyone's.
      ::usleep(static_cast<useconds_t>(50'000 + random.below(250'000)));
      is_over = ::waitpid(controller, &status, WNOHANG) == controller;
      if (is_over || ranks + whole + controllers >= kills) continue;
      std::vector<pid_t> workers;
      for (const pid_t pid : family(controller))
        if (!trial_of(pid).empty()) workers.push_back(pid);
      const auto kind = random.below(5);
      if (kind == 0) {
        ++controllers;
        ::kill(controller, SIGKILL);
        ::waitpid(controller, &status, 0);
        break;
      }
      if (workers.empty()) continue;
      const pid_t victim = workers[random.below(workers.size())];
      const std::string trial = trial_of(victim);
      for (const pid_t pid : workers)
        if (pid == victim || (kind == 1 && trial_of(pid) == trial)) ::kill(pid, SIGKILL);
      ++(kind == 1 ? whole : ranks);
    }
  }
  EXPECT_EQ(status, 0);
  EXPECT_GT(ranks + whole + controllers, 0);
  const auto expected = outcomes("calm");
  ASSERT_EQ(expected.size(), static_cast<std::size_t>(samples));
  EXPECT_EQ(outcomes("killed"), expected) << ranks << " ranks, " << whole << " trials and "
                                          << controllers << " controllers were killed";
  if (given) fmt::print("{} ranks, {} trials, {} controllers killed\n", ranks, whole, controllers);
}

}  // namespace
}  // namespace kolo::test
