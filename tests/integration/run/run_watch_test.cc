// A run as others see it while it goes on: what its launcher shows, and that it goes with it.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/files.h"
#include "kolo_process.h"
#include "launch/run_board.h"

namespace kolo::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class RunWatchTest : public testing::Test {
 protected:
  RunWatchTest() { ::setenv("XDG_STATE_HOME", state_.path().c_str(), 1); }
  ~RunWatchTest() override { ::unsetenv("XDG_STATE_HOME"); }

  [[nodiscard]] fs::path runs() const { return state_.path() / "kolo/runs"; }
  [[nodiscard]] std::string file(const char* name) const { return state_.path() / name; }

  TempDir state_{"kolo-runs"};
};

TEST_F(RunWatchTest, WhoWaitsForWhomIsSeenWhileItWaits) {
  KoloProcess run({"run", "-np", "3", KOLO_RANK_PROGRAM, "behind", file("go")});
  Json seen;
  ASSERT_TRUE(eventually([&] {
    const auto all = launch::runs_under_way();
    if (all.size() != 1) return false;
    seen = all.front();
    return launch::who_waits(seen).waiting.size() == 2;
  })) << seen;
  EXPECT_THAT(launch::who_waits(seen).waiting, ElementsAre(0, 1));
  EXPECT_THAT(launch::who_waits(seen).awaited, ElementsAre(2));
  EXPECT_EQ(seen["pid"], run.pid());
  EXPECT_THAT(seen["program"], HasSubstr("behind"));
  ASSERT_EQ(seen["ranks"].size(), 3U);
  EXPECT_EQ(seen["ranks"][2]["host"], "localhost");
  EXPECT_EQ(seen["ranks"][2]["state"], "running");

  const std::string before = launch::runs_version();
  write_file_atomically(file("go"), "");
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_NE(launch::runs_version(), before);
  EXPECT_TRUE(launch::runs_under_way().empty());
  EXPECT_TRUE(fs::is_empty(runs()));
}

TEST_F(RunWatchTest, NobodyElseCanLook) {
  KoloProcess run({"run", "-np", "2", KOLO_RANK_PROGRAM, "behind", file("go")});
  ASSERT_TRUE(eventually([&] { return launch::runs_under_way().size() == 1; }));
  struct stat found {};
  ASSERT_EQ(::stat(runs().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 077, 0U);
  for (const auto& entry : fs::recursive_directory_iterator(runs())) {
    ASSERT_EQ(::stat(entry.path().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 077, 0U) << entry.path();
  }
  write_file_atomically(file("go"), "");
  EXPECT_EQ(run.wait(), 0);
}

TEST_F(RunWatchTest, WhatAKilledLauncherLeftIsTakenAway) {
  {
    KoloProcess run({"run", "-np", "2", KOLO_RANK_PROGRAM, "behind", file("go")});
    ASSERT_TRUE(eventually([&] { return launch::runs_under_way().size() == 1; }));
    run.signal(SIGKILL);
    run.wait();
    EXPECT_FALSE(fs::is_empty(runs()));
    EXPECT_TRUE(run.nothing_left());
  }
  EXPECT_TRUE(launch::runs_under_way().empty());
  EXPECT_TRUE(fs::is_empty(runs()));
}

TEST_F(RunWatchTest, ARunGoesOnWhereItCannotBeShown) {
  write_file_atomically(state_.path() / "kolo", "not a folder");
  const Finished run = run_kolo({"run", "-np", "2", KOLO_RANK_PROGRAM, "meet"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");
}

TEST_F(RunWatchTest, RanksStaySilentIfToldTo) {
  KoloProcess::Options options;
  options.environment = {"KOLO_ACTIVITY=0"};
  KoloProcess run({"run", "-np", "2", KOLO_RANK_PROGRAM, "behind", file("go")}, options);
  ASSERT_TRUE(eventually([&] { return launch::runs_under_way().size() == 1; }));
  write_file_atomically(file("go"), "");
  EXPECT_EQ(run.wait(), 0);
}

#ifdef KOLO_ELASTIC_PROGRAM
TEST_F(RunWatchTest, AnElasticJobShowsItsGroups) {
  KoloProcess run({"run", "-np", "3", "--min-np", "2", KOLO_ELASTIC_PROGRAM, "--steps", "100000",
                   "--pause-ms", "10"});
  const std::string victim = " is rank 1 of 3";
  ASSERT_TRUE(run.wait_for_out(" is rank 2 of 3") && run.wait_for_out(victim));
  const std::string out = run.out();
  const auto end = out.find(victim);
  const auto begin = out.rfind(' ', end - 1);
  ASSERT_EQ(::kill(std::stoi(out.substr(begin, end - begin)), SIGKILL), 0);
  Json seen;
  ASSERT_TRUE(eventually([&] {
    const auto all = launch::runs_under_way();
    if (all.size() == 1) seen = all.front();
    return seen.value("generation", 0) == 2;
  })) << seen;
  EXPECT_TRUE(seen["elastic"]);
  EXPECT_EQ(seen["ranks"].size(), 2U);
  EXPECT_THAT(json_text(seen["events"]), HasSubstr("was killed by signal 9"));
  run.signal(SIGTERM);
  run.wait();
}
#endif

}  // namespace
}  // namespace kolo::test
