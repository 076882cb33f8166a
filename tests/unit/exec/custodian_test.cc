// The custodian of this machine, for real: processes, sockets, signals.
#include "exec/custodian.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <sstream>

#include "base/errors.h"
#include "base/files.h"
#include "base/pipe.h"
#include "base/subprocess.h"
#include "exec/start.h"
#include "owner.h"

namespace kolo::exec {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

bool lives(const std::string& pid) {
  try {
    const std::string stat = read_file("/proc/" + pid + "/stat");
    return stat.substr(stat.rfind(')') + 2, 1) != "Z";
  } catch (const Error&) {
    return false;
  }
}

/// The first word of a task's output.
std::string word_of(const std::string& text) { return text.substr(0, text.find_first_of(" \n")); }

TEST(CustodianTest, OutputExitAndEnd) {
  Owner owner;
  owner.link().start(Owner::shell(3, "echo out; echo err >&2; exit 7"));
  ASSERT_TRUE(owner.wait_for_end(3));
  EXPECT_EQ(owner.out[3], "out\n");
  EXPECT_EQ(owner.err[3], "err\n");
  EXPECT_EQ(exit_code_of(owner.exits.at(3)), 7);
  EXPECT_EQ(exit_code_of(owner.ends[3].status), 7);
  EXPECT_EQ(owner.ends[3].error, "");
}

TEST(CustodianTest, FilesAreAppendedToAndPrivateAndTheirEndIsTold) {
  const TempDir directory;
  const fs::path log = directory.path() / "log";
  write_file_atomically(log, "from before\n");
  Owner owner;
  Task task = Owner::shell(1, "echo one; echo two >&2; exit 1");
  task.streams = {false, log, log};
  owner.link().start(task);
  ASSERT_TRUE(owner.wait_for_end(1));
  EXPECT_EQ(read_file(log), "from before\none\ntwo\n");
  EXPECT_EQ(owner.ends[1].tail, "one\ntwo\n");

  task.id = 2;
  task.streams = {false, directory.path() / "new", {}};
  owner.link().start(task);
  ASSERT_TRUE(owner.wait_for_end(2));
  struct stat facts {};
  ASSERT_EQ(::stat((directory.path() / "new").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
}

TEST(CustodianTest, ATaskThatCannotBeStartedCostsNobodyElseAnything) {
  Owner owner;
  Task task = Owner::shell(1, "");
  task.argv = {"no-such-program"};
  owner.link().start(task);
  task = Owner::shell(2, "");
  task.directory = "/no/such/directory";
  owner.link().start(task);
  task = Owner::shell(3, "");
  task.streams = {false, "/no/such/directory/log", {}};
  owner.link().start(task);
  owner.link().start(Owner::shell(4, "echo fine"));
  for (const TaskId id : {1, 2, 3, 4}) ASSERT_TRUE(owner.wait_for_end(id)) << id;
  EXPECT_THAT(owner.ends[1].error, HasSubstr("no-such-program"));
  EXPECT_THAT(owner.ends[2].error, HasSubstr("directory"));
  EXPECT_THAT(owner.ends[3].error, HasSubstr("/no/such/directory/log"));
  EXPECT_EQ(owner.ends[4].error, "");
  EXPECT_EQ(owner.out[4], "fine\n");
}

TEST(CustodianTest, ANumberCanBeUsedAgainAfterItsEnd) {
  Owner owner;
  owner.link().start(Owner::shell(1, "echo first; sleep 1000"));
  ASSERT_TRUE(owner.wait_for_output(1, "first"));
  owner.link().start(Owner::shell(1, "echo second"));
  ASSERT_TRUE(owner.wait_for_end(1));
  EXPECT_THAT(owner.ends[1].error, HasSubstr("runs already"));
  owner.ends.clear();
  owner.link().kill(1);
  ASSERT_TRUE(owner.wait_for_end(1));
  EXPECT_EQ(owner.out[1], "first\n");
  owner.link().start(Owner::shell(1, "echo third"));
  EXPECT_TRUE(owner.wait_for_output(1, "third"));
}

TEST(CustodianTest, EnvironmentOfTheOwnerAndOfTheTask) {
  Owner owner;
  owner.link().set_environment({"OF_ALL=1", "BOTH=1", "KOLO_RANK=9"});
  Task task = Owner::shell(1, "echo $OF_ALL $BOTH $KOLO_TASK; env | grep -c ^KOLO_CUSTODIAN=");
  task.environment = {"BOTH=2"};
  owner.link().start(task);
  ASSERT_TRUE(owner.wait_for_end(1));
  EXPECT_THAT(owner.out[1], ::testing::MatchesRegex("1 2 [0-9a-f.]+\n0\n"));
}

TEST(CustodianTest, DescriptorsArePassed) {
  Owner owner;
  Pipe pipe = make_pipe();
  Task task = Owner::shell(1, "echo hello >&$THE_FD");
  task.descriptors = {{pipe.write.get(), "THE_FD"}};
  owner.link().start(task);
  pipe.write.reset();
  ASSERT_TRUE(owner.wait_for_end(1));
  char text[16] = {};
  ASSERT_EQ(::read(pipe.read.get(), text, sizeof text), 6);
  EXPECT_STREQ(text, "hello\n");
  // Nobody keeps it: the reader sees the end.
  EXPECT_EQ(::read(pipe.read.get(), text, sizeof text), 0);
}

TEST(CustodianTest, TheSecretIsASealedFileAndNeverAWord) {
  Owner owner;
  Task task = Owner::shell(1, "cat /proc/self/fd/$KOLO_SECRET_FD; env | grep -c marker");
  task.secret = "marker" + std::string(26, 'x');
  owner.link().start(task);
  ASSERT_TRUE(owner.wait_for_end(1));
  EXPECT_THAT(owner.out[1], ::testing::EndsWith(task.secret + "0\n"));
}

TEST(CustodianTest, ATaskThatIgnoresSigtermIsKilledAfterItsGraceTime) {
  Owner owner;
  Task task = Owner::shell(1, "trap '' TERM; echo up; while :; do sleep 0.01; done");
  task.grace.end = 200ms;
  owner.link().start(task);
  ASSERT_TRUE(owner.wait_for_output(1, "up"));
  owner.link().end(1);
  ASSERT_TRUE(owner.wait_for_end(1));
  EXPECT_EQ(exit_code_of(owner.ends[1].status), 128 + SIGKILL);
}

TEST(CustodianTest, ATaskThatHearsSigtermDecidesItsStatus) {
  Owner owner;
  owner.link().start(Owner::shell(1, "trap 'exit 5' TERM; echo up; while :; do sleep 0.01; done"));
  ASSERT_TRUE(owner.wait_for_output(1, "up"));
  owner.link().end(1);
  ASSERT_TRUE(owner.wait_for_end(1));
  EXPECT_EQ(exit_code_of(owner.ends[1].status), 5);
}

TEST(CustodianTest, DoubleForksAndNewSessionsAreEndedBeforeTheEndIsTold) {
  Owner owner;
  // The child leaves the process group, its parent ends, and its own child has another parent.
  owner.link().start(Owner::shell(
      1, "setsid sh -c 'sh -c \"echo \\$\\$; exec sleep 1000\" & echo' & sleep 0.1; exit 0"));
  ASSERT_TRUE(owner.wait_for_end(1));
  std::istringstream lines(owner.out[1]);
  std::string pid;
  while (pid.empty() && std::getline(lines, pid)) {
  }
  ASSERT_NE(pid, "");
  EXPECT_FALSE(lives(pid)) << pid;
  EXPECT_EQ(exit_code_of(owner.ends[1].status), 0);
}

TEST(CustodianTest, AProcessWhoseFirstThreadHasEndedIsEndedAndHoldsNobodyUp) {
  const TempDir directory;
  const fs::path number = directory.path() / "number";
  Owner owner;
  Task task = Owner::shell(1, "");
  task.argv = {KOLO_FIRST_THREAD_ENDS, number};
  owner.link().start(task);
  ASSERT_TRUE(owner.wait([&] { return fs::exists(number) && owner.exits.contains(1); }));
  owner.link().start(Owner::shell(2, "exit 0"));
  ASSERT_TRUE(owner.wait([&] { return owner.ends.contains(1) && owner.ends.contains(2); }, 8s));
  EXPECT_EQ(owner.ends[1].error, "");
  EXPECT_EQ(owner.ends[2].error, "");
  EXPECT_FALSE(fs::exists("/proc/" + read_file(number)));
}

TEST(CustodianTest, WhatIsNoFileInPlaceOfALogFailsTheTaskAlone) {
  const TempDir directory;
  const fs::path pipe = directory.path() / "pipe", link = directory.path() / "link";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink(directory.path() / "precious", link);
  Owner owner;
  TaskId id = 1;
  for (const fs::path& log : {pipe, link}) {
    Task task = Owner::shell(id, "echo text");
    task.streams = {false, log, log};
    owner.link().start(task);
    ASSERT_TRUE(owner.wait_for_end(id));
    EXPECT_THAT(owner.ends[id++].error, HasSubstr("is no plain file"));
  }
  EXPECT_FALSE(fs::exists(directory.path() / "precious"));
  // One that a task makes of its own log, the end of which is told.
  Task task = Owner::shell(id, "rm log; mkfifo log; exit 1");
  task.directory = directory.path();
  task.streams = {false, directory.path() / "log", directory.path() / "log"};
  owner.link().start(task);
  ASSERT_TRUE(owner.wait_for_end(id));
  EXPECT_EQ(owner.ends[id].tail, "");
}

TEST(CustodianTest, WhoWasKilledIsToldBeforeWhoEndedBecauseOfIt) {
  const TempDir directory;
  const std::string go = (directory.path() / "go").string();
  const auto waits_and = [&go](const char* end) {
    return fmt::format("echo $$ $PPID; while ! [ -e {} ]; do sleep 0.01; done; {}", go, end);
  };
  Owner owner;
  owner.link().start(Owner::shell(1, waits_and("exit 1")));
  owner.link().start(Owner::shell(2, waits_and("kill -9 $$")));
  ASSERT_TRUE(owner.wait_for_output(1, "\n") && owner.wait_for_output(2, "\n"));
  const pid_t custodian = std::stoi(owner.out[1].substr(owner.out[1].find(' ')));
  ::kill(custodian, SIGSTOP);  // it will see both ends at once
  write_file_atomically(go, "");
  const Deadline deadline = Deadline::after(20s);
  while ((lives(word_of(owner.out[1])) || lives(word_of(owner.out[2]))) && !deadline.passed())
    ::poll(nullptr, 0, 1);
  ::kill(custodian, SIGCONT);
  ASSERT_TRUE(owner.wait([&] { return owner.exit_order.size() == 2; }));
  EXPECT_THAT(owner.exit_order, ::testing::ElementsAre(2, 1));
}

TEST(CustodianTest, AFullPipeSlowsTheTaskAndLosesNothing) {
  Owner owner;
  constexpr std::size_t kBytes = 20U << 20;
  owner.link().start(Owner::shell(1, fmt::format("head -c {} /dev/zero; echo end", kBytes)));
  // Nothing is read here for a while: the custodian's own limit and the pipes fill up.
  ::poll(nullptr, 0, 300);
  ASSERT_TRUE(owner.wait_for_end(1));
  EXPECT_EQ(owner.out[1].size(), kBytes + 4);
}

TEST(CustodianTest, ALostLinkEndsTheTasks) {
  Owner owner;
  owner.link().start(Owner::shell(1, "echo $$; sleep 1000"));
  owner.link().start(Owner::shell(2, "setsid sh -c 'echo $$; sleep 1000'"));
  ASSERT_TRUE(owner.wait([&] { return !owner.out[1].empty() && !owner.out[2].empty(); }));
  const std::string first = word_of(owner.out[1]), second = word_of(owner.out[2]);
  EXPECT_TRUE(lives(first) && lives(second));
  owner.close();  // waits for the guard
  EXPECT_FALSE(lives(first));
  EXPECT_FALSE(lives(second));
}

TEST(CustodianTest, TheFamilyLockIsFreeWhenNothingIsLeft) {
  const TempDir family;
  Owner owner(Link::to_this_machine(family.path()));
  Task task = Owner::shell(1, "trap '' TERM; setsid sleep 1000 & echo up; sleep 1000");
  task.grace.owner_lost = 0ms;
  owner.link().start(task);
  ASSERT_TRUE(owner.wait_for_output(1, "up"));
  const Fd other(::open(family.path().c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_NE(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
  owner.close();
  EXPECT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
}

// As on another host: the study's next session has a custodian of its own there.
TEST(CustodianTest, TasksOfAFamilyBeginWhenThoseOfItsLastCustodianHaveEnded) {
  const TempDir dir;
  const std::string go = (dir.path() / "go").string(), over = (dir.path() / "over").string();
  Owner first, second, stranger;
  first.link().set_family(dir.path().string());
  first.link().start(
      Owner::shell(1, "echo up; until [ -e " + go + " ]; do sleep 0.01; done; : > " + over));
  ASSERT_TRUE(first.wait_for_output(1, "up"));
  second.link().set_family(dir.path().string());
  stranger.link().set_family("another");
  const std::string look = "[ -e " + over + " ] && echo after || echo before";
  second.link().start(Owner::shell(1, look));
  stranger.link().start(Owner::shell(1, look));
  EXPECT_TRUE(stranger.wait_for_output(1, "before"));
  write_file_atomically(go, "");
  ASSERT_TRUE(first.wait_for_end(1));
  first.close();
  ASSERT_TRUE(second.wait_for_end(1));
  EXPECT_EQ(second.out[1], "after\n");
}

TEST(CustodianTest, AThousandTasksAtOnce) {
  Owner owner;
  constexpr TaskId kTasks = 1000;
  for (TaskId id = 1; id <= kTasks; ++id) {
    Task task = Owner::shell(id, "exec sleep 1000");
    task.streams.to_owner = false;
    owner.link().start(task);
  }
  for (TaskId id = 1; id <= kTasks; ++id) owner.link().end(id);
  ASSERT_TRUE(owner.wait([&] { return owner.ends.size() == kTasks; }, 100s));
  for (const auto& [id, times] : owner.times_told) EXPECT_EQ(times, 1) << id;
  for (const auto& [id, end] : owner.ends) EXPECT_EQ(exit_code_of(end.status), 128 + SIGTERM) << id;
}

TEST(CustodianTest, GarbageEndsTheLinkAndNothingElse) {
  LocalCustodian custodian = start_local_custodian({});
  ASSERT_GT(::write(custodian.socket.get(), "\xff\xff\xff\xff garbage", 12), 0);
  char text[256];
  while (::read(custodian.socket.get(), text, sizeof text) > 0) {
  }
  int status = -1;
  ASSERT_EQ(::waitpid(custodian.guard, &status, 0), custodian.guard);
  EXPECT_EQ(exit_code_of(status), 0);
}

TEST(CustodianTest, AnOwnerThatIsSilentForItsLeaseIsLost) {
  Owner owner;
  owner.link().set_lease(200ms);
  Task task = Owner::shell(1, "echo $$; sleep 1000");
  task.grace.owner_lost = 0ms;
  owner.link().start(task);
  ASSERT_TRUE(owner.wait_for_output(1, "\n"));
  const std::string process = word_of(owner.out[1]);
  EXPECT_TRUE(owner.wait_for_close());
  owner.close();  // waits for the custodian, which waits until nothing is left
  EXPECT_FALSE(lives(process));
}

}  // namespace
}  // namespace kolo::exec
