// Meeting at rank 0, as under srun: real processes, a private file.
#include "comm/rendezvous/hosted.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "kolo/error.h"
#include "rendezvous_fixture.h"

namespace kolo::comm::rendezvous {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class HostedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::chmod(dir_.path().c_str(), 0700);
    ::setenv("KOLO_RENDEZVOUS_DIR", dir_.path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("KOLO_RENDEZVOUS_DIR"); }

  static Launched launched(int rank, int size) {
    Launched result;
    result.launcher = Launcher::slurm;
    result.rank = rank;
    result.size = size;
    result.job = "test-job";
    return result;
  }

  /// Runs each rank in a process of its own; their exit statuses.
  static std::vector<int> run(int size, const std::function<void(int rank)>& body) {
    std::vector<pid_t> children;
    for (int rank = 0; rank < size; ++rank) {
      children.push_back(::fork());
      if (children.back() != 0) continue;
      int status = 1;
      try {
        body(rank);
        status = ::testing::Test::HasFailure() ? 1 : 0;
      } catch (const std::exception& error) {
        fprintf(stderr, "rank %d: %s\n", rank, error.what());
      }
      ::_exit(status);
    }
    std::vector<int> statuses;
    for (pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      statuses.push_back(status);
    }
    return statuses;
  }

  TempDir dir_{"kolo-hosted-test"};
};

TEST_F(HostedTest, RanksMeetSeveralTimesAndTheFileIsGone) {
  auto statuses = run(3, [&](int rank) {
    for (int turn = 0; turn < 20; ++turn) {
      auto bootstrap = make_hosted_bootstrap(launched(rank, 3), Deadline::after(20s));
      EXPECT_EQ(bootstrap->topology().rank(), rank);
      EXPECT_EQ(bootstrap->topology().local_size(), 3);
      EXPECT_EQ(bootstrap->allgather("k", {0, 1, 2}, "x", Deadline::after(20s)).size(), 3U);
      EXPECT_TRUE(fs::is_empty(dir_.path()));
    }
    // The host is the last to leave, or the others would be told that it is gone.
    auto bootstrap = make_hosted_bootstrap(launched(rank, 3), Deadline::after(20s));
    bootstrap->allgather("end", {0, 1, 2}, "", Deadline::after(20s));
  });
  EXPECT_THAT(statuses, ::testing::Each(0));
}

TEST_F(HostedTest, AStaleFileIsWaitedPast) {
  // Left by an earlier job under the same name: nobody listens there any more.
  Fd listener = listen_tcp(SocketAddress::loopback());
  const std::string old_address = local_address_of(listener.get()).str();
  listener.reset();
  write_file_atomically(
      dir_.path() / "test-job",
      "kolo rendezvous 1\nsecret " + std::string(64, 'a') + "\naddress " + old_address + "\n",
      kPrivateFile);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  auto statuses = run(2, [&](int rank) {
    if (rank == 0) {
      char byte;  // rank 1 has seen the stale file by now
      EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    } else {
      EXPECT_THROW(make_hosted_bootstrap(launched(1, 2), Deadline::after(100ms)), Error);
      EXPECT_EQ(::write(ready[1], "x", 1), 1);
    }
    auto bootstrap = make_hosted_bootstrap(launched(rank, 2), Deadline::after(20s));
    bootstrap->allgather("k", {0, 1}, "", Deadline::after(20s));
  });
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_THAT(statuses, ::testing::Each(0));
}

TEST_F(HostedTest, RankZeroThatNeverComesIsNamed) {
  auto statuses = run(1, [&](int) {
    try {
      make_hosted_bootstrap(launched(1, 2), Deadline::after(50ms));
      ADD_FAILURE() << "must throw";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::timeout);
      EXPECT_THAT(error.what(), HasSubstr("rank 0 did not arrive"));
    }
  });
  EXPECT_THAT(statuses, ::testing::Each(0));
}

TEST_F(HostedTest, TheHostRemovesItsFileWhenTheOthersDoNotCome) {
  auto statuses = run(1, [&](int) {
    EXPECT_THROW(make_hosted_bootstrap(launched(0, 2), Deadline::after(50ms)), Error);
  });
  EXPECT_THAT(statuses, ::testing::Each(0));
  EXPECT_TRUE(fs::is_empty(dir_.path()));
}

TEST_F(HostedTest, AKilledRankIsNews) {
  auto statuses = run(3, [&](int rank) {
    auto bootstrap = make_hosted_bootstrap(launched(rank, 3), Deadline::after(20s));
    bootstrap->allgather("k", {0, 1, 2}, "", Deadline::after(20s));
    if (rank == 1) ::raise(SIGKILL);
    pollfd poll{bootstrap->news_fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&poll, 1, 20'000), 1);
    auto news = bootstrap->take_news();
    EXPECT_EQ(news.size(), 1U);
    EXPECT_EQ(news.at(0).rank, 1);
    bootstrap->allgather("end", {0, 2}, "", Deadline::after(20s));
  });
  EXPECT_EQ(statuses[0], 0);
  EXPECT_EQ(statuses[2], 0);
}

TEST_F(HostedTest, ADirectoryThatOthersMayEnterIsRefused) {
  ::chmod(dir_.path().c_str(), 0755);
  try {
    make_hosted_bootstrap(launched(0, 2), Deadline::after(50ms));
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::failed_precondition);
    EXPECT_THAT(error.what(), HasSubstr("chmod 700"));
  }
}

TEST_F(HostedTest, AFileThatOthersMayReadIsRefused) {
  write_file_atomically(dir_.path() / "test-job", "kolo rendezvous 1\n", 0644);
  EXPECT_THROW(make_hosted_bootstrap(launched(1, 2), Deadline::after(10s)), Error);
}

TEST_F(HostedTest, AJobWithoutANameIsRefused) {
  Launched nameless = launched(0, 2);
  nameless.job.clear();
  try {
    make_hosted_bootstrap(nameless, Deadline::after(50ms));
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("KOLO_JOB_ID"));
  }
}

}  // namespace
}  // namespace kolo::comm::rendezvous
