#include "tune/protocol/socket_directory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "tune/protocol/trial_channels.h"

namespace kolo::tune {
namespace {

namespace fs = std::filesystem;

class SocketDirectories : public testing::Test {
 protected:
  SocketDirectories() { ::setenv("TMPDIR", scratch_.path().c_str(), 1); }
  ~SocketDirectories() override { ::unsetenv("TMPDIR"); }

  [[nodiscard]] int count() const {
    return static_cast<int>(std::distance(fs::directory_iterator(scratch_.path()), {}));
  }
  /// A process that listens for trials and is killed.
  static void be_killed() {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const TrialChannels channels;
      if (::write(ready[1], "x", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(ready[0]);
    ::close(ready[1]);
  }

  TempDir scratch_;
};

TEST_F(SocketDirectories, AreRemovedByTheNextWhenTheirOwnerWasKilled) {
  be_killed();
  be_killed();
  EXPECT_EQ(count(), 1);  // the second has removed the first's
  {
    const TrialChannels next;
    EXPECT_EQ(count(), 1);
    EXPECT_TRUE(fs::exists(next.socket_path()));
  }
  EXPECT_EQ(count(), 0);
}

TEST_F(SocketDirectories, OfTheLivingAreLeftAlone) {
  const TrialChannels mine;
  std::optional<TrialChannels> other(std::in_place);
  EXPECT_TRUE(fs::exists(mine.socket_path()));
  EXPECT_EQ(count(), 2);
  other.reset();
  remove_abandoned_socket_directories();
  EXPECT_TRUE(fs::exists(mine.socket_path()));
}

TEST_F(SocketDirectories, ThatWereNeverFinishedAreRemoved) {
  fs::create_directory(scratch_.path() / "kolo-trials.begun");
  fs::create_directory(scratch_.path() / "somebody-elses");
  remove_abandoned_socket_directories();
  EXPECT_FALSE(fs::exists(scratch_.path() / "kolo-trials.begun"));
  EXPECT_EQ(count(), 1);
}

TEST_F(SocketDirectories, CanBeMadeByManyAtOnce) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int round = 0; round < 50; ++round) {
        const TrialChannels channels;
        if (!fs::exists(channels.socket_path())) ::_exit(1);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(count(), 0);
}

}  // namespace
}  // namespace kolo::tune
