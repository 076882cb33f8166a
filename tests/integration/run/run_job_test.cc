// Ranks that are kolo programs: they meet, lose each other, and keep their secret.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <set>

#include "base/files.h"
#include "base/socket.h"
#include "kolo_process.h"
#include "patient_run.h"
#include "support/scale.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Value of a variable in a process's environment.
std::string variable_of(pid_t pid, const std::string& name) {
  const std::string text = '\0' + file_text("/proc/" + std::to_string(pid) + "/environ");
  const auto at = text.find('\0' + name + '=');
  if (at == std::string::npos) return "";
  const auto start = at + name.size() + 2;
  return text.substr(start, text.find('\0', start) - start);
}

pid_t rank_process(const KoloProcess& run, const std::string& rank) {
  for (pid_t pid : run.descendants())
    if (variable_of(pid, "KOLO_RANK") == rank) return pid;
  return -1;
}

TEST(RunJobTest, RanksMeet) {
  Finished run = run_kolo({"run", "-np", "3", KOLO_RANK_PROGRAM});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(sorted_lines(run.out),
              ::testing::ElementsAre("[0]<stdout>:rank 0 of 3, local 0 of 3, cross 0 of 1, sum 6",
                                     "[1]<stdout>:rank 1 of 3, local 1 of 3, cross 0 of 1, sum 6",
                                     "[2]<stdout>:rank 2 of 3, local 2 of 3, cross 0 of 1, sum 6"));
}

// The kernel kills whoever makes a larger file, and shared memory is a file to it.
TEST(RunJobTest, ALimitForFilesIsAnErrorAndNoSignal) {
  if (kThreadSanitized) GTEST_SKIP() << "ThreadSanitizer makes a file before main()";
  const Finished run =
      run_kolo({"run", "-np", "2", "sh", "-c", "ulimit -f 0; exec \"$0\"", KOLO_RANK_PROGRAM});
  EXPECT_NE(run.status, 128 + SIGXFSZ);
  EXPECT_THAT(run.err, ::testing::HasSubstr("the limit for the size of files is 0"));
}

TEST(RunJobTest, RanksMeetBehindWrappers) {
  for (const std::vector<std::string>& wrapper :
       {std::vector<std::string>{"sh", "-c", "exec \"$0\""},
        {"sh", "-c", "env -u NOTHING nice -n 0 \"$0\"; exit $?"},
        // Closes every descriptor, as many languages' process libraries do.
        {"bash", "-c",
         "for f in /proc/self/fd/*; do n=${f##*/}; [ $n -gt 2 ] && "
         "eval \"exec $n>&-\"; done 2>/dev/null; exec \"$0\""}}) {
    std::vector<std::string> arguments = {"run", "-np", "2"};
    arguments.insert(arguments.end(), wrapper.begin(), wrapper.end());
    arguments.emplace_back(KOLO_RANK_PROGRAM);
    Finished run = run_kolo(arguments);
    EXPECT_EQ(run.status, 0) << wrapper[2] << run.err;
    EXPECT_THAT(run.out, HasSubstr("rank 1 of 2")) << wrapper[2];
  }
}

TEST(RunJobTest, RanksMeetAgainAndAgain) {
  Finished run = run_kolo({"run", "-np", "2", KOLO_RANK_PROGRAM, "again"});
  EXPECT_EQ(run.status, 0) << run.err;
}

TEST(RunJobTest, OneRankIsAlone) {
  Finished run = run_kolo({"run", "-np", "1", KOLO_RANK_PROGRAM});
  EXPECT_EQ(run.out, "[0]<stdout>:rank 0 of 1, local 0 of 1, cross 0 of 1, sum 1\n");
}

// The others do not hear the launcher's request to end, so that nothing else ends them.
TEST(RunJobTest, AKilledRankIsToldToTheOthers) {
  TempDir dir;
  PatientRun run(3, "trap '' TERM; exec " KOLO_RANK_PROGRAM " wait > said.$KOLO_RANK", dir.path());
  const auto said_by = [&](int rank) {
    return file_text(dir.path() / ("said." + std::to_string(rank)));
  };
  for (const int rank : {0, 1, 2})
    ASSERT_TRUE(eventually([&] { return said_by(rank) == "ready\n"; })) << said_by(rank);
  const auto processes = run.processes();
  const auto victim = std::find_if(processes.begin(), processes.end(),
                                   [](pid_t pid) { return variable_of(pid, "KOLO_RANK") == "1"; });
  ASSERT_NE(victim, processes.end());
  ::kill(*victim, SIGKILL);
  EXPECT_NE(run.wait(), 0);
  for (const int rank : {0, 2}) EXPECT_THAT(said_by(rank), HasSubstr("peer_lost of rank 1"));
  EXPECT_TRUE(eventually([&] { return run.processes().empty(); }));
}

TEST(RunJobTest, TheLauncherSaysWhichRankWasKilled) {
  KoloProcess run({"run", "-np", "3", KOLO_RANK_PROGRAM, "wait"});
  for (const char* rank : {"0", "1", "2"})
    ASSERT_TRUE(run.wait_for_out("[" + std::string(rank) + "]<stdout>:ready")) << run.err();
  const pid_t victim = rank_process(run, "1");
  ASSERT_GT(victim, 0);
  ::kill(victim, SIGKILL);
  EXPECT_EQ(run.wait(), 137);
  EXPECT_THAT(run.err(), HasSubstr("rank 1 on localhost was killed by signal 9"));
  EXPECT_TRUE(run.nothing_left());
}

TEST(RunJobTest, TheSecretIsNowhereToBeSeen) {
  KoloProcess run(
      {"run", "-np", "2", "--log-level", "trace", "--verbose", KOLO_RANK_PROGRAM, "secret"});
  ASSERT_TRUE(run.wait_for_out("[0]<stdout>:ready"));
  ASSERT_TRUE(run.wait_for_out("[1]<stdout>:ready"));
  // The test may look where the ranks can: through the inherited descriptor.
  const pid_t rank = rank_process(run, "0");
  ASSERT_GT(rank, 0);
  const std::string descriptor = variable_of(rank, "KOLO_SECRET_FD");
  ASSERT_NE(descriptor, "");
  std::string secret = file_text("/proc/" + std::to_string(rank) + "/fd/" + descriptor);
  ASSERT_EQ(secret.size(), 46U);
  secret.erase(0, secret.size() - 32);
  std::string hex;
  for (unsigned char byte : secret) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    hex += digits;
  }
  auto reveals = [&](const std::string& text) {
    return text.find(secret) != std::string::npos || text.find(hex) != std::string::npos;
  };
  auto processes = run.descendants();
  ASSERT_GE(processes.size(), 3U);  // the agent and two ranks
  processes.push_back(run.pid());
  for (pid_t pid : processes)
    for (const char* file : {"environ", "cmdline"})
      EXPECT_FALSE(reveals(file_text("/proc/" + std::to_string(pid) + "/" + file)))
          << pid << " " << file;
  run.signal(SIGTERM);
  run.wait();
  EXPECT_FALSE(reveals(run.out()));
  EXPECT_FALSE(reveals(run.err()));
}

TEST(RunJobTest, StrangersAtTheDoorDisturbNobody) {
  // Rank 0 waits for a file before it runs its program; meanwhile strangers come.
  TempDir dir;
  const std::string go = (dir.path() / "go").string();
  KoloProcess run({"run", "-np", "2", "sh", "-c",
                   "echo at $KOLO_RENDEZVOUS; while [ ! -e " + go +
                       " ]; do sleep 0.02; done; exec " KOLO_RANK_PROGRAM});
  ASSERT_TRUE(run.wait_for_out("at "));
  const std::string out = run.out();
  const auto start = out.find("at ") + 3;
  const SocketAddress address = SocketAddress::parse(out.substr(start, out.find('\n') - start));
  EXPECT_TRUE(address.is_loopback());
  std::vector<Fd> strangers;
  for (int i = 0; i < 150; ++i) {
    strangers.push_back(connect_tcp(address, Deadline::after(10s)));
    if (i % 2 == 0)
      send_all(strangers.back().get(), "GET / HTTP/1.0\r\n\r\n", Deadline::after(10s), "it");
  }
  write_file_atomically(go, "");
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("rank 1 of 2"));
}

TEST(RunJobTest, ManyRanksOnFewCores) {
  Finished run = run_kolo({"run", "-np", "8", KOLO_RANK_PROGRAM});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("rank 7 of 8, local 7 of 8, cross 0 of 1, sum 36"));
}

}  // namespace
}  // namespace kolo::test
