#include "base/subprocess.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/errors.h"
#include "base/files.h"
#include "kolo/error.h"

namespace kolo {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

int wait_status(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

SpawnOptions shell(const std::string& script) {
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", script};
  options.environment = current_environment();
  return options;
}

int run_shell(const SpawnOptions& options) { return exit_code_of(wait_status(spawn(options))); }

TEST(SubprocessTest, RunsToItsEnd) {
  auto result = run_command({"sh", "-c", "echo out; echo err >&2; exit 3"}, Deadline::after(20s));
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "err\n");
  EXPECT_EQ(exit_code_of(result.status), 3);
  EXPECT_FALSE(result.ok());
}

TEST(SubprocessTest, ManyBytesOnBothStreams) {
  auto result = run_command({"sh", "-c", "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"},
                            Deadline::after(20s));
  EXPECT_EQ(result.output.size(), 300'000U);
  EXPECT_EQ(result.errors.size(), 300'000U);
}

TEST(SubprocessTest, EndsInTime) {
  try {
    run_command({"sleep", "1000"}, Deadline::after(50ms));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
  }
}

TEST(SubprocessTest, SaysWhyItCannotRun) {
  TempDir dir;
  write_file_atomically(dir.path() / "plain", "");
  auto expect = [](SpawnOptions options, ErrorCode code, const std::string& text) {
    try {
      spawn(options);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
    EXPECT_LT(::waitpid(-1, nullptr, WNOHANG), 0) << "must be reaped";
  };
  SpawnOptions options = shell("true");
  options.argv = {"no-such-program"};
  expect(options, ErrorCode::not_found, "no such program");
  options.argv = {dir.path() / "plain"};
  expect(options, ErrorCode::not_found, "not executable");
  options = shell("true");
  options.directory = dir.path() / "gone";
  expect(options, ErrorCode::not_found, "launch directory");
}

TEST(SubprocessTest, FindsPrograms) {
  TempDir dir;
  write_file_atomically(dir.path() / "plain", "");
  write_file_atomically(dir.path() / "tool", "", 0755);
  EXPECT_EQ(find_program("tool", "/nowhere:" + dir.path().string()), dir.path() / "tool");
  EXPECT_EQ(find_program("./tool", "", dir.path()), dir.path() / "./tool");
  EXPECT_THROW(find_program("tool", "/nowhere"), Error);
  EXPECT_THROW(find_program("plain", dir.path().string()), Error);
  EXPECT_THROW(find_program(dir.path().string(), ""), Error);
}

TEST(SubprocessTest, NothingIsInheritedByAccident) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Fd kept(::fcntl(ends[0], F_DUPFD_CLOEXEC, 50)), other(::fcntl(ends[0], F_DUPFD_CLOEXEC, 60));
  SpawnOptions options = shell(
      fmt::format("[ -e /proc/self/fd/{} ] && [ ! -e /proc/self/fd/{} ]", kept.get(), other.get()));
  options.keep = {kept.get()};
  EXPECT_EQ(run_shell(options), 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(SubprocessTest, SignalsAreAsAFreshProgramExpects) {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t set, before;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &set, &before);
  const int code = run_shell(shell("kill -TERM $$; exit 0"));
  const int pipe_code = run_shell(shell("kill -PIPE $$; exit 0"));
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  EXPECT_EQ(code, 128 + SIGTERM);
  EXPECT_EQ(pipe_code, 128 + SIGPIPE);
}

TEST(SubprocessTest, OwnGroupDirectoryAndEnvironment) {
  TempDir dir;
  SpawnOptions options = shell(
      "[ \"$(pwd -P)\" = \"$WANTED\" ] && [ -z \"$HOME\" ] && "
      "[ $(ps -o pgid= -p $$ 2>/dev/null || echo $$) -eq $$ ]");
  options.directory = dir.path();
  options.environment = {"WANTED=" + std::filesystem::canonical(dir.path()).string(),
                         "PATH=/usr/bin:/bin"};
  options.own_process_group = true;
  EXPECT_EQ(run_shell(options), 0);
}

TEST(SubprocessTest, DiesWithItsParent) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::close(ends[0]);
    SpawnOptions options = shell("exec sleep 1000");
    options.standard_output = ends[1];  // open as long as the grandchild lives
    options.die_with_parent = true;
    spawn(options);
    ::_exit(0);
  }
  ::close(ends[1]);
  ::waitpid(parent, nullptr, 0);
  char byte;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  ::close(ends[0]);
}

TEST(SubprocessTest, StatusesForPeople) {
  EXPECT_EQ(describe_wait_status(0), "exited");
  EXPECT_EQ(describe_wait_status(3 << 8), "exited with status 3");
  EXPECT_EQ(describe_wait_status(SIGKILL), "was killed by signal 9 (Killed)");
  EXPECT_EQ(exit_code_of(3 << 8), 3);
  EXPECT_EQ(exit_code_of(SIGKILL), 137);
}

}  // namespace
}  // namespace kolo
