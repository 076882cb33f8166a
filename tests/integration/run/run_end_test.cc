// Every way in which a job can end, and that nothing stays behind.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/files.h"
#include "kolo_process.h"
#include "patient_run.h"

namespace kolo::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> shell(int ranks, const std::string& script) {
  return {"run", "-np", std::to_string(ranks), "sh", "-c", script};
}

TEST(RunEndTest, SuccessIsZero) {
  Finished run = run_kolo(shell(3, "exit 0"));
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.err, "");
}

TEST(RunEndTest, TheStatusIsTheFailingRanks) {
  Finished run = run_kolo(shell(3, "[ $KOLO_RANK = 1 ] && exit 37; exec sleep 1000"));
  EXPECT_EQ(run.status, 37);
  EXPECT_THAT(run.err, HasSubstr("rank 1 on localhost exited with status 37; stopping the other"));
}

TEST(RunEndTest, ASignalIsOneHundredTwentyEightMore) {
  Finished run = run_kolo(shell(2, "[ $KOLO_RANK = 0 ] && kill -SEGV $$; exec sleep 1000"));
  EXPECT_EQ(run.status, 128 + SIGSEGV);
  EXPECT_THAT(run.err, HasSubstr("rank 0 on localhost was killed by signal 11"));
}

TEST(RunEndTest, TheFirstToFailCounts) {
  // The second one fails because it is told to stop, and that is not the reason.
  KoloProcess run(shell(2,
                        "trap 'exit 9' TERM; echo ready; [ $KOLO_RANK = 0 ] && exit 5; "
                        "while :; do sleep 0.1; done"));
  EXPECT_EQ(run.wait(), 5);
}

TEST(RunEndTest, OneRankThatEndsWellDoesNotEndTheOthers) {
  TempDir dir;
  const std::string go = (dir.path() / "go").string();
  KoloProcess run(shell(
      2, "[ $KOLO_RANK = 0 ] && exit 0; while [ ! -e " + go + " ]; do sleep 0.01; done; echo end"));
  ASSERT_TRUE(eventually([&] { return processes_with("KOLO_TEST_MARK", run.mark()).size() > 1; }));
  write_file_atomically(go, "");
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.out(), "[1]<stdout>:end\n");
}

TEST(RunEndTest, RanksMayCleanUpBeforeTheyAreKilled) {
  KoloProcess run(shell(2,
                        "trap 'echo cleaned; exit 0' TERM; echo ready; "
                        "[ $KOLO_RANK = 0 ] && { sleep 0.2; exit 3; }; "
                        "while :; do sleep 0.05; done"));
  EXPECT_EQ(run.wait(), 3);
  EXPECT_THAT(run.out(), HasSubstr("[1]<stdout>:cleaned"));
}

TEST(RunEndTest, WhoIgnoresTheRequestIsKilledAfterFiveSeconds) {
  const auto start = std::chrono::steady_clock::now();
  // Rank 0 must not fail before rank 1 ignores the request.
  const std::string ignores = testing::TempDir() + "kolo-ignores-" + std::to_string(::getpid());
  KoloProcess run(shell(2, "trap '' TERM; [ $KOLO_RANK = 1 ] && : > " + ignores + "; until [ -e " +
                               ignores + " ]; do sleep 0.02; done; " +
                               "[ $KOLO_RANK = 0 ] && exit 3; while :; do sleep 0.1; done"));
  EXPECT_EQ(run.wait(), 3);
  ::unlink(ignores.c_str());
  EXPECT_GE(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_TRUE(run.nothing_left());
}

TEST(RunEndTest, InterruptEndsAllRanks) {
  for (auto [number, status] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGHUP, 129}}) {
    KoloProcess run(shell(2, "echo ready; sleep 1000; true"));
    ASSERT_TRUE(run.wait_for_out("[0]<stdout>:ready"));
    ASSERT_TRUE(run.wait_for_out("[1]<stdout>:ready"));
    run.signal(number);
    EXPECT_EQ(run.wait(), status);
    EXPECT_THAT(run.err(), HasSubstr("stopping all ranks"));
    EXPECT_TRUE(run.nothing_left());
  }
}

TEST(RunEndTest, ASecondInterruptKillsAtOnce) {
  TempDir dir;
  PatientRun run(2,
                 "trap ': > asked.$KOLO_RANK' TERM; : > ready.$KOLO_RANK; "
                 "while :; do sleep 0.05; done",
                 dir.path());
  const auto both = [&](const std::string& what) {
    return eventually([&] {
      return fs::exists(dir.path() / (what + ".0")) && fs::exists(dir.path() / (what + ".1"));
    });
  };
  ASSERT_TRUE(both("ready"));
  run.signal(SIGINT);
  ASSERT_TRUE(both("asked"));
  // One that comes right after the first counts as the same request.
  while (!run.has_ended()) {
    run.signal(SIGINT);
    std::this_thread::sleep_for(300ms);
  }
  EXPECT_EQ(run.wait(), 130);
  EXPECT_TRUE(eventually([&] { return run.processes().empty(); }));
}

// timeout(1) sends its signal to the command, and again to the whole group.
TEST(RunEndTest, AnEchoOfARequestDoesNotKill) {
  KoloProcess run(shell(1,
                        "trap 'echo in peace; exit 0' TERM; echo ready; while :; do sleep 0.05; "
                        "done"));
  ASSERT_TRUE(run.wait_for_out("[0]<stdout>:ready"));
  for (const int number : {SIGSTOP, SIGTERM, SIGHUP, SIGCONT}) run.signal(number);
  EXPECT_EQ(run.wait(), 129);
  EXPECT_THAT(run.out(), HasSubstr("in peace"));
}

TEST(RunEndTest, AKilledLauncherLeavesNothingBehind) {
  // A child of the rank, one in a session of its own, and one whose parent has ended.
  KoloProcess run(shell(2, "sleep 1000 & setsid sleep 1000 & (sleep 1000 & ) ; echo ready; wait"));
  ASSERT_TRUE(run.wait_for_out("[0]<stdout>:ready"));
  ASSERT_TRUE(run.wait_for_out("[1]<stdout>:ready"));
  ASSERT_GE(run.descendants().size(), 8U);
  run.signal(SIGKILL);
  EXPECT_EQ(run.wait(), 137);
  EXPECT_TRUE(run.nothing_left());
}

TEST(RunEndTest, AKilledLauncherLeavesNobodyBehindWhoIgnoresRequests) {
  KoloProcess run(shell(2, "trap '' TERM HUP INT; echo ready; while :; do sleep 0.1; done"));
  ASSERT_TRUE(run.wait_for_out("[1]<stdout>:ready"));
  run.signal(SIGKILL);
  run.wait();
  EXPECT_TRUE(run.nothing_left());
}

TEST(RunEndTest, AKilledCustodianIsAnErrorAndLeavesNothingBehind) {
  KoloProcess run(shell(2, "setsid sleep 1000 & echo ready $KOLO_CUSTODIAN_PID; wait"));
  ASSERT_TRUE(run.wait_for_out("[0]<stdout>:ready"));
  ASSERT_TRUE(run.wait_for_out("[1]<stdout>:ready"));
  const std::string out = run.out();
  const pid_t agent = std::stoi(out.substr(out.find("ready ") + 6));
  ASSERT_GT(agent, 1);
  ::kill(agent, SIGKILL);
  EXPECT_EQ(run.wait(), 1);
  EXPECT_THAT(run.err(), HasSubstr("was lost: its custodian was killed by signal 9"));
  EXPECT_TRUE(run.nothing_left());
}

TEST(RunEndTest, WhatARankLeavesRunningEndsWithIt) {
  KoloProcess run(shell(2, "sleep 1000 & setsid sleep 1000 & exit 0"));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_TRUE(run.nothing_left());
}

// The rank is a `kolo run` itself, which is killed: its own ranks are no children of the outer job.
TEST(RunEndTest, WhatARunInsideARunLeavesEndsBeforeTheOuterOne) {
  for (int round = 0; round < 3; ++round) {
    KoloProcess run({"run", "-np", "1", "sh", "-c",
                     std::string(KOLO_PROGRAM) +
                         " run -np 2 sh -c 'setsid sleep 1000 & echo up; exec sleep 1000' & "
                         "echo inner $!; wait"});
    ASSERT_TRUE(run.wait_for_out("[1]<stdout>:up") && run.wait_for_out("[0]<stdout>:up"));
    const std::string out = run.out();
    const auto at = out.find("inner ");
    ASSERT_NE(at, std::string::npos);
    ::kill(std::stoi(out.substr(at + 6)), SIGKILL);
    run.wait();
    EXPECT_EQ(processes_with("KOLO_TEST_MARK", run.mark()), std::vector<pid_t>{});
  }
}

TEST(RunEndTest, AReaderThatGoesAwayDoesNotEndTheJob) {
  TempDir dir;
  const std::string file = (dir.path() / "done").string();
  KoloProcess::Options options;
  options.close_output = true;
  KoloProcess run(
      shell(1, "i=0; while [ $i -lt 1000 ]; do echo line; i=$((i+1)); done; echo > " + file),
      options);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_NO_THROW(read_file(file));
}

}  // namespace
}  // namespace kolo::test
