// Elastic jobs of real processes on this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "base/files.h"
#include "kolo_process.h"

namespace kolo::test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> elastic(std::vector<std::string> options, int steps, int pause_ms = 10) {
  options.insert(options.begin(), "run");
  for (const std::string& word :
       {std::string(KOLO_ELASTIC_PROGRAM), std::string("--steps"), std::to_string(steps),
        std::string("--pause-ms"), std::to_string(pause_ms)})
    options.push_back(word);
  return options;
}

/// The process of "process P is rank R of N", when it has come; -1 if it does not.
pid_t process_of(KoloProcess& run, int rank, int size) {
  const std::string wanted = " is rank " + std::to_string(rank) + " of " + std::to_string(size);
  if (!run.wait_for_out(wanted)) return -1;
  const std::string out = run.out();
  const auto at = out.find(wanted);
  const auto begin = out.rfind(' ', at - 1);
  return static_cast<pid_t>(std::stol(out.substr(begin + 1, at - begin - 1)));
}

TEST(ElasticRunTest, AKilledRankIsLostAndTheOthersGoOnInTheirProcesses) {
  KoloProcess run(elastic({"-np", "3", "--min-np", "2"}, 200));
  const pid_t first = process_of(run, 0, 3);
  const pid_t victim = process_of(run, 1, 3);
  const pid_t last = process_of(run, 2, 3);
  ASSERT_GT(victim, 0);
  ASSERT_EQ(::kill(victim, SIGKILL), 0);
  EXPECT_EQ(process_of(run, 0, 2), first);
  EXPECT_EQ(process_of(run, 1, 2), last);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("200 steps, correct"));
  EXPECT_THAT(run.err(), HasSubstr("worker 1 on localhost was killed by signal 9"));
  EXPECT_TRUE(run.nothing_left());
}

TEST(ElasticRunTest, TwoKilledAtOnceLeaveOneThatFinishes) {
  KoloProcess run(elastic({"-np", "3", "--min-np", "1"}, 100));
  const pid_t first = process_of(run, 0, 3), second = process_of(run, 1, 3);
  ASSERT_TRUE(first > 0 && second > 0 && process_of(run, 2, 3) > 0);
  ::kill(first, SIGKILL);
  ::kill(second, SIGKILL);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("100 steps, correct"));
}

TEST(ElasticRunTest, ARankThatIsAskedToGoFinishesItsStepAndIsNoFailure) {
  KoloProcess run(elastic({"-np", "2", "--min-np", "1", "--notice-signal", "USR1"}, 100));
  const pid_t leaver = process_of(run, 1, 2);
  ASSERT_GT(leaver, 0);
  ::kill(leaver, SIGUSR1);
  EXPECT_TRUE(run.wait_for_out("process " + std::to_string(leaver) + " has left"));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("100 steps, correct"));
  EXPECT_THAT(run.err(), Not(HasSubstr("killed")));
}

TEST(ElasticRunTest, NewRanksOfTheScriptEnterAndGetTheState) {
  TempDir dir;
  const auto hosts = dir.path() / "hosts";
  std::ofstream(hosts) << "localhost:1\n";
  KoloProcess run(
      elastic({"--min-np", "1", "--host-discovery-script", "cat " + hosts.string()}, 400));
  ASSERT_GT(process_of(run, 0, 1), 0);
  std::ofstream(hosts) << "localhost:2\n";
  EXPECT_GT(process_of(run, 1, 2), 0);
  std::ofstream(hosts) << "<garbage>\n";
  EXPECT_TRUE(run.wait_for_err("the last list of hosts stays"));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("400 steps, correct"));
  EXPECT_THAT(run.out(), Not(HasSubstr("rank 1 of 2 from step 0 on")));
}

TEST(ElasticRunTest, ARankIsLostInTheFirstStepOfOneThatHasJoined) {
  KoloProcess run(elastic(
      {"-np", "3", "--min-np", "1", "-H", "localhost:3", "--blacklist-cooldown-range", "1,1"}, 12,
      /*pause_ms=*/300));
  const pid_t middle = process_of(run, 1, 3), last = process_of(run, 2, 3);
  ASSERT_TRUE(middle > 0 && last > 0);
  ::kill(last, SIGKILL);
  // The one that comes has the state of the others, but no copy of it yet.
  const std::regex joined("process (\\d+) is rank 2 of 3");
  ASSERT_TRUE(eventually([&] {
    const std::string out = run.out();
    return std::distance(std::sregex_iterator(out.begin(), out.end(), joined), {}) == 2;
  })) << run.out()
      << run.err();
  ::kill(middle, SIGKILL);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("12 steps, correct"));
}

TEST(ElasticRunTest, TooFewRanksAreAnErrorThatSaysSo) {
  KoloProcess run(elastic({"-np", "2", "--min-np", "2"}, 1000));
  const pid_t victim = process_of(run, 1, 2);
  ASSERT_GT(victim, 0);
  ::kill(victim, SIGKILL);
  EXPECT_EQ(run.wait(), 128 + SIGKILL);
  EXPECT_THAT(run.err(), HasSubstr("2 ranks are needed (--min-np), but there is 1"));
  EXPECT_TRUE(run.nothing_left());
}

TEST(ElasticRunTest, WithoutTheLauncherRanksEndWithTheirStep) {
  KoloProcess run(elastic({"-np", "2", "--min-np", "1"}, 100'000));
  ASSERT_GT(process_of(run, 1, 2), 0);
  run.signal(SIGKILL);
  EXPECT_TRUE(run.nothing_left());
}

TEST(ElasticRunTest, AJobWhoseLauncherWasKilledIsResumedFromItsLastCommit) {
  TempDir dir;
  const std::string commits = (dir.path() / "commits").string();
  {
    KoloProcess run(elastic({"-np", "2", "--min-np", "1", "--commit-dir", commits}, 100'000));
    ASSERT_GT(process_of(run, 1, 2), 0);
    run.signal(SIGKILL);
    EXPECT_TRUE(run.nothing_left());
  }
  EXPECT_THAT(run_kolo(elastic({"-np", "2", "--min-np", "1", "--commit-dir", commits}, 10)).err,
              HasSubstr("it has the commits of another job"));
  const Finished resumed =
      run_kolo(elastic({"-np", "3", "--min-np", "1", "--resume", commits}, 300));
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("300 steps, correct"));
  EXPECT_THAT(resumed.out, Not(HasSubstr("from step 0 on")));
}

TEST(ElasticRunTest, ANewRankTakesTheCommitOnDiskWhenAllOthersDied) {
  TempDir dir;
  KoloProcess run(elastic({"-np", "1", "--min-np", "1", "--blacklist-cooldown-range", "1,1",
                           "--commit-every", "5", "--commit-dir", dir.path().string()},
                          200));
  const pid_t only = process_of(run, 0, 1);
  ASSERT_TRUE(eventually([&] {
    for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
      if (entry.path().extension() == ".kolo") return true;
    return false;
  }));
  ::kill(only, SIGKILL);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("200 steps, correct"));
  EXPECT_TRUE(std::regex_search(run.out(), std::regex("is rank 0 of 1 from step [1-9]")))
      << run.out();
}

TEST(ElasticRunTest, AScriptThatFailsAtFirstIsAnError) {
  const Finished run =
      run_kolo(elastic({"--min-np", "1", "--host-discovery-script", "exit 3"}, 10));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("host discovery script 'exit 3': it exited with status 3"));
}

TEST(ElasticRunTest, AScriptThatPrintsNoHostsAtFirstIsAnErrorThatNamesItOnce) {
  const Finished run =
      run_kolo({"run", "-np", "1", "--host-discovery-script", "echo '<html>'", "true"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("host discovery script 'echo '<html>'': line 1: '<html>': "));
}

TEST(ElasticRunTest, AProgramThatIsNotThereEndsAJobWhoseHostsMayCome) {
  const auto run = run_kolo(
      {"run", "-np", "1", "--host-discovery-script", "echo localhost:2", "/no/such/program"});
  EXPECT_NE(run.status, 0);
  EXPECT_THAT(run.err, HasSubstr("every worker has failed before it joined the job"));
}

TEST(ElasticRunTest, OptionsThatMeanNothingAreRefused) {
  EXPECT_THAT(run_kolo(elastic({"-np", "2", "--max-np", "3"}, 1)).err,
              HasSubstr("--max-np is for elastic jobs"));
  EXPECT_THAT(run_kolo(elastic({"-np", "2", "--min-np", "3"}, 1)).err,
              HasSubstr("--min-np 3 is more than -np 2"));
  EXPECT_THAT(run_kolo(elastic({"--min-np", "3", "--max-np", "2"}, 1)).err,
              HasSubstr("--min-np 3 is more than --max-np 2"));
  EXPECT_THAT(run_kolo(elastic({"-np", "3", "--min-np", "1", "--virtual-ranks", "2"}, 1)).err,
              HasSubstr("-np 3 is more than --virtual-ranks 2"));
  EXPECT_THAT(
      run_kolo(
          elastic({"--min-np", "1", "-H", "localhost:1", "--blacklist-cooldown-range", "9"}, 1))
          .err,
      HasSubstr("two numbers of seconds are needed"));
}

TEST(ElasticRunTest, AProgramThatIsNoElasticOneEndsAsItWould) {
  EXPECT_EQ(run_kolo({"run", "-np", "2", "--min-np", "1", "true"}).status, 0);
  EXPECT_EQ(run_kolo({"run", "-np", "2", "--min-np", "1", "sh", "-c", "exit 3"}).status, 3);
}

}  // namespace
}  // namespace kolo::test
