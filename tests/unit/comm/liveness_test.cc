#include "comm/liveness.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <condition_variable>
#include <csignal>

#include "comm/shm/late_process.h"
#include "support/memory_bootstrap.h"

namespace kolo::comm {
namespace {

using namespace std::chrono_literals;

// Collects departures and lets a test wait for them.
class Listener {
 public:
  std::function<void(const Departure&)> callback() {
    return [this](const Departure& departure) {
      std::lock_guard lock(mutex_);
      heard_.push_back(departure);
      changed_.notify_all();
    };
  }
  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] { return heard_.size() >= count; });
  }
  std::vector<Departure> heard() {
    std::lock_guard lock(mutex_);
    return heard_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Departure> heard_;
};

// A process that does nothing until it is killed.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ == 0)
      for (;;) ::pause();
  }
  ~Sleeper() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

class LivenessTest : public testing::Test {
 protected:
  Sleeper first_, second_;  // forked before there are threads
  std::shared_ptr<test::Meeting> meeting_ = test::Meeting::create({0, 0, 0});
  std::shared_ptr<Bootstrap> bootstrap_ = meeting_->join(0);
};

TEST_F(LivenessTest, NobodyIsGoneAtFirst) {
  Liveness liveness(bootstrap_);
  liveness.watch(1, first_.pid());
  EXPECT_FALSE(liveness.any_departed());
  EXPECT_TRUE(liveness.departures().empty());
  EXPECT_FALSE(liveness.departure_of(1).has_value());
}

TEST_F(LivenessTest, TellsOfAProcessThatEnds) {
  Liveness liveness(bootstrap_);
  Listener listener;
  liveness.listen(listener.callback());
  liveness.watch(1, first_.pid());
  liveness.watch(2, second_.pid());
  second_.end();
  ASSERT_TRUE(listener.wait_for(1));
  EXPECT_EQ(listener.heard()[0].rank, 2);
  EXPECT_TRUE(liveness.any_departed());
  EXPECT_TRUE(liveness.departure_of(2).has_value());
  EXPECT_FALSE(liveness.departure_of(1).has_value());
}

TEST_F(LivenessTest, AProcessThatIsGoneAlreadyIsToldAtOnce) {
  const pid_t pid = first_.pid();
  first_.end();
  Liveness liveness(bootstrap_);
  liveness.watch(1, pid);
  EXPECT_TRUE(liveness.departure_of(1).has_value());
}

TEST_F(LivenessTest, DoesNotWatchItsOwnProcess) {
  Liveness liveness(bootstrap_);
  liveness.watch(1, ::getpid());
  EXPECT_FALSE(liveness.any_departed());
}

TEST_F(LivenessTest, PassesOnTheNewsOfTheBootstrap) {
  Liveness liveness(bootstrap_);
  Listener listener;
  liveness.listen(listener.callback());
  meeting_->depart(2, "exited with status 3");
  ASSERT_TRUE(listener.wait_for(1));
  EXPECT_EQ(listener.heard()[0].rank, 2);
  EXPECT_EQ(listener.heard()[0].reason, "exited with status 3");
}

TEST_F(LivenessTest, KeepsTheFirstReason) {
  Liveness liveness(bootstrap_);
  Listener listener;
  liveness.listen(listener.callback());
  liveness.declare({1, "connection lost"});
  liveness.declare({1, "its process ended"});
  EXPECT_EQ(liveness.departure_of(1), "connection lost");
  EXPECT_EQ(listener.heard().size(), 1U);
}

TEST_F(LivenessTest, HowARankWentMayBecomeKnownLater) {
  Liveness liveness(bootstrap_);
  Listener listener;
  liveness.listen(listener.callback());
  liveness.declare({1, "its process ended"});
  liveness.declare({2, "its process ended"});
  liveness.declare({1, "was killed", DepartureKind::failed});
  liveness.declare({1, "exited", DepartureKind::finished});
  EXPECT_EQ(listener.heard().size(), 3U);
  const auto departures = liveness.departures();
  ASSERT_EQ(departures.size(), 2U);
  EXPECT_EQ(departures[0].rank, 1);  // as they were seen
  EXPECT_EQ(departures[0].reason, "was killed");
  EXPECT_EQ(departures[0].kind, DepartureKind::failed);
}

TEST_F(LivenessTest, ALateListenerHearsThePast) {
  Liveness liveness(bootstrap_);
  liveness.declare({2, "left"});
  Listener listener;
  liveness.listen(listener.callback());
  ASSERT_EQ(listener.heard().size(), 1U);
  EXPECT_EQ(listener.heard()[0].rank, 2);
}

TEST_F(LivenessTest, AnUnlistenedListenerHearsNothing) {
  Liveness liveness(bootstrap_);
  Listener listener, other;
  const int token = liveness.listen(listener.callback());
  liveness.listen(other.callback());
  liveness.unlisten(token);
  liveness.declare({1, "left"});
  EXPECT_EQ(other.heard().size(), 1U);
  EXPECT_TRUE(listener.heard().empty());
}

// unlisten() must not return while the callback runs on the other thread: whoever unlistens is
// about to destroy what the callback uses.
TEST_F(LivenessTest, UnlistenWaitsForACallbackUnderWay) {
  Liveness liveness(bootstrap_);
  std::mutex mutex;
  std::condition_variable changed;
  bool inside = false, returned = false, returned_too_early = false;
  const int token = liveness.listen([&](const Departure&) {
    std::unique_lock lock(mutex);
    inside = true;
    changed.notify_all();
    returned_too_early = changed.wait_for(lock, 200ms, [&] { return returned; });
  });
  std::thread declarer([&] { liveness.declare({1, "left"}); });
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, 20s, [&] { return inside; }));
  }
  liveness.unlisten(token);
  {
    std::lock_guard lock(mutex);
    returned = true;
    changed.notify_all();
  }
  declarer.join();
  EXPECT_FALSE(returned_too_early);
}

TEST(LateProcess, IsSaidToBeStoppedOrHeld) {
  Sleeper other;
  EXPECT_EQ(why_late(other.pid()), "it is alive, but stuck or late");
  ::setenv("KOLO_TRIAL_ID", "study_00001", 1);
  EXPECT_NE(why_late(other.pid()).find("the study holds the trial"), std::string::npos);
  ::unsetenv("KOLO_TRIAL_ID");
  ::kill(other.pid(), SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(other.pid(), &status, WUNTRACED), other.pid());
  EXPECT_NE(why_late(other.pid()).find("kill -CONT"), std::string::npos);
}

}  // namespace
}  // namespace kolo::comm
