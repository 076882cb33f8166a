// Workers that are processes of this test, which is their launcher: what elastic::run() does when
// groups are long in coming, when others are stopped, and when the disk is full.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>
#include <map>

#include "base/deadline.h"
#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/socket.h"
#include "comm/elastic/commit_files.h"
#include "comm/elastic/lobby.h"
#include "comm/elastic/membership.h"
#include "comm/elastic/notice.h"
#include "comm/launchers.h"
#include "comm/rendezvous/doorkeeper.h"
#include "kolo/elastic.h"
#include "kolo/engine.h"
#include "kolo/error.h"
#include "launch/elastic/group_leader.h"
#include "support/few_descriptors.h"

namespace kolo::launch::elastic {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using Environment = std::map<std::string, std::string>;

/// A job on this host. Its workers are forked at the beginning, before this process has threads,
/// and wait until they are started.
class Job {
 public:
  /// What a worker does: returns what it has to say.
  using Body = std::function<std::string(int worker)>;

  Job(const RosterOptions& options, int workers, const Environment& environment, const Body& body)
      : leader_(options, HostPool(std::nullopt, [] { return 0.5; }), SocketAddress::loopback(),
                orders()),
        secret_(make_secret_file(leader_.secret())) {
    for (int worker = 0; worker < workers; ++worker) fork_one(worker, environment, body);
  }
  ~Job() {
    for (const auto& [worker, process] : processes_) {
      ::kill(process.pid, SIGKILL);
      ::waitpid(process.pid, nullptr, 0);
    }
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// What is to happen when a group was formed, before its members know of it.
  std::function<void(Generation)> when_formed = [](Generation) {};

  void set_slots(int slots) { leader_.hosts_changed({{"localhost", slots}}); }
  void signal(int worker, int number) { ::kill(processes_.at(worker).pid, number); }

  /// Serves the workers until `done`, or for too long.
  bool serve_until(const std::function<bool()>& done) {
    const Deadline deadline = Deadline::after(50s);
    while (!done() && !deadline.passed()) {
      pollfd poll{leader_.poll_fd(), POLLIN, 0};
      ::poll(&poll, 1, 20);
      leader_.hear();
      leader_.keep_time();
      reap();
    }
    return done();
  }
  bool serve_to_the_end() {
    return serve_until([this] { return leader_.is_over(); });
  }
  /// By its own report, which it makes in a file.
  bool has_reached(int worker, const std::string& mark) {
    return std::filesystem::exists(directory_.path() / fmt::format("{}-{}", worker, mark));
  }
  void let_reach(int worker, const std::string& mark) {
    std::ofstream(directory_.path() / fmt::format("{}-{}", worker, mark));
  }
  static void reach(int worker, const std::string& mark) {
    std::ofstream(std::filesystem::path(::getenv("REPORTS")) / fmt::format("{}-{}", worker, mark));
  }
  /// In a worker: waits for what the test lets it reach.
  static void await(int worker, const std::string& mark) {
    const auto path =
        std::filesystem::path(::getenv("REPORTS")) / fmt::format("{}-{}", worker, mark);
    for (const Deadline deadline = Deadline::after(60s); !std::filesystem::exists(path);
         ::usleep(10'000))
      if (deadline.passed()) throw_error(ErrorCode::timeout, "nobody has made {}", path.string());
  }
  [[nodiscard]] bool lives(int worker) const { return processes_.contains(worker); }
  std::string said_by(int worker) {
    const auto path = directory_.path() / fmt::format("{}", worker);
    return std::filesystem::exists(path) ? read_file(path) : "";
  }

  int status = -1;
  std::string told;  // to the user
  int formed = 0;

 private:
  struct Process {
    pid_t pid = -1;
    int go = -1;
  };

  LeaderOrders orders() {
    LeaderOrders orders;
    orders.start = [this](int worker, const HostPool::Slot&) {
      ASSERT_TRUE(processes_.contains(worker));
      ::close(processes_[worker].go);
    };
    orders.kill = [this](int worker) {
      if (processes_.contains(worker)) ::kill(processes_[worker].pid, SIGKILL);
    };
    orders.end = [this](int code, const std::string& reason) {
      status = code;
      told += reason + "\n";
    };
    orders.say = [this](const std::string& line) { told += line + "\n"; };
    orders.formed = [this](Generation generation, const std::vector<int>&) {
      ++formed;
      when_formed(generation);
    };
    return orders;
  }

  void fork_one(int worker, const Environment& environment, const Body& body) {
    int go[2];
    ASSERT_EQ(::pipe2(go, O_CLOEXEC), 0);
    const pid_t pid = ::fork();
    if (pid != 0) {
      ::close(go[0]);
      processes_[worker] = {pid, go[1]};
      return;
    }
    ::close(go[1]);
    for (const auto& [other, process] : processes_) ::close(process.go);
    char byte;
    while (::read(go[0], &byte, 1) < 0) {
    }
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::setenv("REPORTS", directory_.path().c_str(), 1);
    ::setenv("KOLO_WORKER", std::to_string(worker).c_str(), 1);
    ::setenv("KOLO_RENDEZVOUS", leader_.door().str().c_str(), 1);
    ::setenv("KOLO_SECRET_FD", std::to_string(secret_.get()).c_str(), 1);
    int code = 0;
    std::string said;
    try {
      said = body(worker);
    } catch (const Error& error) {
      said = fmt::format("{}: {}", to_string(error.code()), error.message());
      code = 1;
    }
    std::ofstream(directory_.path() / std::to_string(worker)) << said << std::flush;
    std::exit(code);
  }

  void reap() {
    for (auto it = processes_.begin(); it != processes_.end();) {
      const auto [worker, process] = *it;
      int how = 0;
      if (::waitpid(process.pid, &how, WNOHANG) != process.pid) {
        ++it;
        continue;
      }
      it = processes_.erase(it);
      const int code = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
      leader_.ended(worker, code, fmt::format("ended with {}", code));
    }
  }

  TempDir directory_;
  std::map<int, Process> processes_;
  GroupLeader leader_;
  Fd secret_;
};

/// So many steps of at least so long, with a sum over all ranks in each.
std::string take_steps(int worker, int steps, std::chrono::milliseconds pause) {
  std::int64_t step = 0;
  std::vector<double> sums(1000);
  kolo::elastic::State state;
  state.add(step).add(sums);
  const auto ending = kolo::elastic::run(state, [&](kolo::elastic::State&) {
    Job::reach(worker, fmt::format("of-{}", size()));
    while (step < steps) {
      ::usleep(static_cast<useconds_t>(std::chrono::microseconds(pause).count()));
      std::vector<double> one(sums.size(), 1.0);
      world().allreduce(std::span(one), ReduceOp::average);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += one[i];
      ++step;
      state.commit();
    }
  });
  return fmt::format("{} {:g}", ending == kolo::elastic::Ending::finished ? "finished" : "left",
                     sums.back());
}

TEST(ElasticWorkers, AGroupMayBeLongerInComingThanTheStartMayTake) {
  Job job({.start_ranks = 1, .least_ranks = 1, .start_timeout = 1s, .hosts_may_come = true}, 2,
          {{"KOLO_START_TIMEOUT", "1"}}, [](int worker) { return take_steps(worker, 3, 2500ms); });
  job.set_slots(1);
  ASSERT_TRUE(job.serve_until([&] { return job.has_reached(0, "of-1"); }));
  job.set_slots(2);
  EXPECT_TRUE(job.serve_to_the_end()) << job.told;
  EXPECT_EQ(job.status, 0) << job.told << job.said_by(0) << job.said_by(1);
  EXPECT_EQ(job.said_by(0), "finished 3");
  EXPECT_EQ(job.said_by(1), "finished 3");
}

// Nobody waits for the first when the second dies, so nobody can blame it.
TEST(ElasticWorkers, OneThatIsStoppedWhenAnotherDiesHoldsUpNobodyForEver) {
  Job job({.start_ranks = 3, .least_ranks = 1, .start_timeout = 30s, .stuck_timeout = 8s}, 3,
          {{"KOLO_TIMEOUT_SECONDS", "60"}},
          [](int worker) { return take_steps(worker, 100, 20ms); });
  job.set_slots(3);
  ASSERT_TRUE(job.serve_until([&] {
    return job.has_reached(0, "of-3") && job.has_reached(1, "of-3") && job.has_reached(2, "of-3");
  })) << job.told;
  job.signal(1, SIGSTOP);
  job.signal(2, SIGKILL);
  EXPECT_TRUE(job.serve_to_the_end()) << job.told;
  EXPECT_EQ(job.status, 0) << job.told << job.said_by(0);
  EXPECT_EQ(job.said_by(0), "finished 100");
  EXPECT_THAT(job.told, HasSubstr("worker 1 on localhost has given no sign of life for 8 s"));
}

TEST(ElasticWorkers, OneThatIsStoppedWhileAGroupIsFormedTakesNobodyWithIt) {
  Job job({.start_ranks = 4, .least_ranks = 2, .start_timeout = 30s, .stuck_timeout = 8s}, 4,
          {{"KOLO_TIMEOUT_SECONDS", "2"}},
          [](int worker) { return take_steps(worker, 100, 10ms); });
  job.when_formed = [&](Generation generation) {
    if (generation == 2) job.signal(1, SIGSTOP);
  };
  job.set_slots(4);
  ASSERT_TRUE(job.serve_until([&] { return job.has_reached(2, "of-4"); })) << job.told;
  job.signal(3, SIGKILL);
  EXPECT_TRUE(job.serve_to_the_end()) << job.told;
  EXPECT_EQ(job.status, 0) << job.told << job.said_by(0) << job.said_by(2);
  EXPECT_EQ(job.said_by(0), "finished 100");
  EXPECT_EQ(job.said_by(2), "finished 100");
  EXPECT_EQ(job.formed, 3);
}

TEST(ElasticWorkers, OneThatIsAskedToGoBeforeItHasAGroupLeavesAsAnyOther) {
  Job job({.start_ranks = 2, .least_ranks = 2, .start_timeout = 30s, .hosts_may_come = true}, 1, {},
          [](int worker) {
            kolo::elastic::State state;
            state.add(
                [&] {  // what it begins with, when it heeds signals
                  Job::reach(worker, "waits");
                  return std::string();
                },
                [](const std::string&) {});
            const auto ending = kolo::elastic::run(state, [](kolo::elastic::State&) {});
            return std::string(ending == kolo::elastic::Ending::left ? "left" : "finished");
          });
  job.set_slots(1);
  ASSERT_TRUE(job.serve_until([&] { return job.has_reached(0, "waits"); })) << job.told;
  job.signal(0, SIGTERM);
  EXPECT_TRUE(job.serve_until([&] { return !job.lives(0); }));
  EXPECT_EQ(job.said_by(0), "left");
}

// A program that a rank starts has the rank's environment. If it is one of kolo, too, it must not
// take the rank's place.
TEST(ElasticWorkers, ASecondProcessOfAWorkerDoesNotTakeItsPlace) {
  Job job({.start_ranks = 2, .least_ranks = 2, .start_timeout = 30s}, 2, {}, [](int worker) {
    std::string told;
    std::int64_t step = 0;
    kolo::elastic::State state;
    state.add(step);
    const auto ending = kolo::elastic::run(state, [&](kolo::elastic::State&) {
      while (step < 5) {
        if (worker == 1 && step == 2) {
          try {
            const comm::elastic::Membership second(comm::read_launcher(environment),
                                                   Deadline::after(1s));
            told = "it was welcomed";
          } catch (const Error& error) {
            told = error.message();
          }
        }
        ++step;
        state.commit();
      }
    });
    return fmt::format("{} {} {}", ending == kolo::elastic::Ending::finished, step, told);
  });
  job.set_slots(2);
  EXPECT_TRUE(job.serve_to_the_end()) << job.told;
  EXPECT_EQ(job.status, 0) << job.told;
  EXPECT_EQ(job.said_by(0), "true 5 ");
  EXPECT_THAT(job.said_by(1), testing::StartsWith("true 5 "));
  EXPECT_THAT(job.said_by(1), HasSubstr("KOLO_WORKER"));
}

/// As a router does that has forgotten the connection of this process to its launcher.
void break_connection() {
  const auto door = SocketAddress::parse(::getenv("KOLO_RENDEZVOUS"));
  for (int fd = 0; fd < 1000; ++fd) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    auto* raw = reinterpret_cast<sockaddr*>(&peer);
    if (::getpeername(fd, raw, &length) != 0 || peer.ss_family != AF_INET) continue;
    if (SocketAddress::from_raw(raw, length).str() == door.str()) ::shutdown(fd, SHUT_RDWR);
  }
}

// If it left, with status 0, that would look like the end of the work.
TEST(ElasticWorkers, OneWhoseConnectionBreaksFailsAndTheOthersGoOn) {
  Job job({.start_ranks = 2, .least_ranks = 1, .start_timeout = 30s}, 2, {}, [](int worker) {
    std::int64_t step = 0;
    kolo::elastic::State state;
    state.add(step);
    kolo::elastic::run(state, [&](kolo::elastic::State&) {
      while (step < 5) {
        if (worker == 1 && step == 2) break_connection();
        ++step;
        state.commit();
      }
    });
    return fmt::format("{}", step);
  });
  job.set_slots(2);
  EXPECT_TRUE(job.serve_to_the_end()) << job.told;
  EXPECT_EQ(job.status, 0) << job.told;
  EXPECT_EQ(job.said_by(0), "5") << job.told;
  EXPECT_THAT(job.said_by(1), HasSubstr("unavailable: worker 1: the connection to the launcher"));
}

TEST(ElasticWorkers, OneWhoseLauncherEndsFailsNot) {
  const Secret secret = Secret::random();
  const Fd file = make_secret_file(secret);
  auto lobby = std::make_unique<comm::elastic::Lobby>(
      secret, std::vector{SocketAddress::loopback()}, [](int) { return true; });
  comm::Launched launched;
  launched.worker = 0;
  launched.rendezvous = lobby->addresses()[0].str();
  launched.secret_fd = file.get();
  auto joining = std::async(std::launch::async, [&] {
    return std::make_unique<comm::elastic::Membership>(launched, Deadline::after(20s));
  });
  while (joining.wait_for(0s) != std::future_status::ready) {
    pollfd poll{lobby->poll_fd(), POLLIN, 0};
    ::poll(&poll, 1, 20);
    (void)lobby->receive();
  }
  const auto membership = joining.get();
  lobby.reset();
  const Deadline deadline = Deadline::after(20s);
  while (membership->has_launcher() && !deadline.passed()) (void)membership->wish();
  EXPECT_FALSE(membership->has_launcher());
  EXPECT_EQ(membership->await_next(), comm::elastic::Next::leave);
}

// The door drops whoever is late in a crowd of strangers, or while the launcher was held up.
TEST(ElasticWorkers, OneThatIsDroppedAtTheDoorComesAgain) {
  const Secret secret = Secret::random();
  const Fd file = make_secret_file(secret);
  std::vector<Fd> listeners;
  listeners.push_back(listen_tcp(SocketAddress::loopback()));
  comm::Launched launched;
  launched.worker = 0;
  launched.rendezvous = local_address_of(listeners[0].get()).str();
  launched.secret_fd = file.get();
  auto worker = std::async(std::launch::async, [&] {
    const comm::elastic::Membership membership(launched, Deadline::after(20s));
    return membership.has_launcher();
  });
  const auto await = [](int fd) {
    pollfd poll{fd, POLLIN, 0};
    return ::poll(&poll, 1, 10'000) == 1;
  };
  ASSERT_TRUE(await(listeners[0].get()));
  {
    const Fd first(::accept4(listeners[0].get(), nullptr, nullptr, SOCK_CLOEXEC));
    char byte;
    ASSERT_EQ(::recv(first.get(), &byte, 1, 0), 1);
  }
  comm::rendezvous::Doorkeeper door(
      std::move(listeners), {.secret = secret, .expects = [](const auto&) { return true; }});
  std::vector<comm::rendezvous::Doorkeeper::Guest> guests;
  while (guests.empty() && await(door.poll_fd())) guests = door.admit();
  EXPECT_EQ(guests.size(), 1U);
  EXPECT_TRUE(worker.get());
}

// As in a study with many trials, of which this one is to fail and no other.
TEST(ElasticWorkers, AGroupThatCannotMeetForWantOfDescriptorsEndsItsJobAlone) {
  Job job({.start_ranks = 1, .least_ranks = 1, .start_timeout = 30s, .hosts_may_come = true}, 2, {},
          [](int worker) {
            std::int64_t step = 0;
            kolo::elastic::State state;
            state.add(step).add(
                [&] {
                  Job::reach(worker, "is-connected");
                  return std::string();
                },
                [](const std::string&) {});
            kolo::elastic::run(state, [&](kolo::elastic::State&) {
              Job::reach(worker, "at-work");
              Job::await(worker, "go");
              ++step;
              state.commit();
            });
            return std::string("done");
          });
  job.set_slots(1);
  ASSERT_TRUE(job.serve_until([&] { return job.has_reached(0, "at-work"); })) << job.told;
  job.set_slots(2);
  ASSERT_TRUE(job.serve_until([&] { return job.has_reached(1, "is-connected"); })) << job.told;
  job.let_reach(0, "go");
  {
    const test::FewDescriptors few;
    EXPECT_TRUE(job.serve_to_the_end()) << job.told;
  }
  EXPECT_EQ(job.status, 1) << job.told;
  EXPECT_THAT(job.told, HasSubstr("generation 2 has no place to meet: "));
}

// The engine says that an operation was not submitted, not that a rank is lost.
TEST(ElasticWorkers, OneThatIsStoppedWhileOthersWaitInTheEngineTakesNobodyWithIt) {
  Job job({.start_ranks = 2, .least_ranks = 1, .start_timeout = 30s, .stuck_timeout = 8s}, 2,
          {{"KOLO_TIMEOUT_SECONDS", "2"}}, [](int worker) {
            std::int64_t step = 0;
            kolo::elastic::State state;
            state.add(step);
            kolo::elastic::run(state, [&](kolo::elastic::State&) {
              while (step < 100) {
                float value = 1;
                engine().allreduce("value", {&value, &value, {1}, DataType::float32});
                ++step;
                state.commit();
                if (worker == 1 && step == 3) ::raise(SIGSTOP);
              }
            });
            return fmt::format("{}", step);
          });
  job.set_slots(2);
  EXPECT_TRUE(job.serve_to_the_end()) << job.told;
  EXPECT_EQ(job.status, 0) << job.told << job.said_by(0);
  EXPECT_EQ(job.said_by(0), "100") << job.told;
  EXPECT_THAT(job.told, HasSubstr("worker 1 on localhost"));
}

// The launcher knows the timeout of the environment, and the program has set a longer one.
TEST(ElasticWorkers, AWriterOfALongCommitIsWaitedForAsLongAsTheProgramSays) {
  TempDir commits;
  Job job({.start_ranks = 3,
           .least_ranks = 1,
           .start_timeout = 30s,
           .stuck_timeout = 8s,
           .group_timeout = 1ms},
          3, {{"KOLO_COMMIT_DIR", commits.path()}, {"KOLO_COMMIT_EVERY", "1"}}, [](int worker) {
            std::int64_t step = 0;
            std::int64_t copies = 0;
            kolo::elastic::State state;
            state.add(step).add(
                [&] {
                  // With a commit the state is taken twice by whoever writes: for itself, too.
                  if (worker == 0 && step == 1 && ++copies == 2) {
                    Job::reach(worker, "writing");
                    Job::await(worker, "written");
                  }
                  return std::string("large");
                },
                [](const std::string&) {});
            ContextOptions options;
            options.timeout = 60s;
            kolo::elastic::run(
                state,
                [&](kolo::elastic::State&) {
                  while (step < 3) {
                    if (worker == 2 && step == 1) ::pause();  // the others wait for it, too
                    ++step;
                    state.commit();
                  }
                },
                options);
            return fmt::format("{}", step);
          });
  job.set_slots(3);
  ASSERT_TRUE(job.serve_until([&] { return job.has_reached(0, "writing"); })) << job.told;
  job.signal(2, SIGKILL);
  // The time after which it would be killed if the launcher did not know better.
  const Deadline too_late = Deadline::after(12s);
  (void)job.serve_until([&] { return too_late.passed() || !job.lives(0); });
  job.let_reach(0, "written");
  EXPECT_TRUE(job.serve_to_the_end()) << job.told;
  EXPECT_EQ(job.status, 0) << job.told << job.said_by(0) << job.said_by(1);
  EXPECT_EQ(job.said_by(0), "3") << job.told;
  EXPECT_EQ(job.said_by(1), "3") << job.told;
}

TEST(ElasticWorkers, ADirectoryThatCannotBeWrittenEndsNoJob) {
  Job job({.start_ranks = 2, .least_ranks = 1, .start_timeout = 30s}, 2,
          {{"KOLO_COMMIT_DIR", "/dev/null/commits"}, {"KOLO_COMMIT_EVERY", "1"}}, [](int worker) {
            testing::internal::CaptureStderr();
            const std::string said = take_steps(worker, 5, 1ms);
            const std::string warnings = testing::internal::GetCapturedStderr();
            const auto first = warnings.find("could not go to disk");
            if (first == std::string::npos) return said;
            return said + (warnings.find("could not", first + 1) == std::string::npos
                               ? " with one warning"
                               : " with more");
          });
  job.set_slots(2);
  EXPECT_TRUE(job.serve_to_the_end()) << job.told;
  EXPECT_EQ(job.status, 0) << job.told << job.said_by(0);
  EXPECT_EQ(job.said_by(0), "finished 5 with one warning");
  EXPECT_EQ(job.said_by(1), "finished 5");
}

TEST(ElasticWorkers, ACommitOfAnotherProgramIsAnErrorAndNothingElse) {
  TempDir commits;
  const std::string told_count(8, '\0');
  comm::elastic::CommitFiles(commits.path())
      .write({7, {std::string(8, '\0'), std::string(8 * 1000 + 5, 'x'), told_count}});
  Job job({.start_ranks = 1, .least_ranks = 1, .start_timeout = 30s}, 1,
          {{"KOLO_COMMIT_DIR", commits.path()}},
          [](int worker) { return take_steps(worker, 9, 1ms); });
  job.set_slots(1);
  EXPECT_TRUE(job.serve_to_the_end()) << job.told;
  EXPECT_EQ(job.status, 1) << job.told;
  EXPECT_THAT(job.said_by(0), HasSubstr("invalid_argument: a value of 8005 bytes does not fit"));
}

// The others do not wait for hosts in place of the one that has failed.
TEST(ElasticWorkers, ACommitThatCannotBeReadEndsAllRanks) {
  TempDir commits;
  comm::elastic::CommitFiles(commits.path()).write({7, {"x"}});
  std::ofstream(comm::elastic::CommitFiles(commits.path()).list().front()) << "half";
  Job job({.start_ranks = 3, .least_ranks = 2, .start_timeout = 30s}, 3,
          {{"KOLO_COMMIT_DIR", commits.path()}},
          [](int worker) { return take_steps(worker, 9, 1ms); });
  job.set_slots(3);
  EXPECT_TRUE(job.serve_to_the_end()) << job.told;
  EXPECT_EQ(job.status, 1) << job.told;
  const std::vector<std::string> said = {job.said_by(0), job.said_by(1), job.said_by(2)};
  EXPECT_THAT(said, Contains(HasSubstr("is whole")).Times(1));
  EXPECT_THAT(said, Contains(HasSubstr("could not take the state of the job")).Times(2));
}

TEST(NoticeTest, AForkIsEndedByTheSignalAndTheWorkerIsNotTold) {
  const comm::elastic::Notice notice({SIGTERM});
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    [[maybe_unused]] const auto written = ::write(ready[1], "!", 1);
    for (;;) ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::kill(child, SIGTERM);
  int how = 0;
  const Deadline deadline = Deadline::after(10s);
  while (::waitpid(child, &how, WNOHANG) == 0) {
    if (deadline.passed()) {
      ADD_FAILURE() << "it has not ended";
      ::kill(child, SIGKILL);
    }
    ::usleep(5000);
  }
  EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM) << how;
  EXPECT_FALSE(notice.given());
  pollfd poll{notice.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&poll, 1, 0), 0);
  ::kill(::getpid(), SIGTERM);
  EXPECT_TRUE(notice.given());
  for (const int fd : ready) ::close(fd);
}

}  // namespace
}  // namespace kolo::launch::elastic
