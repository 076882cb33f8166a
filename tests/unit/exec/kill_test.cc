// kill -9 of custodians, guards and owners at random moments: nothing is left behind.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <random>

#include "../../support/scale.h"
#include "base/deadline.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/pipe.h"
#include "owner.h"

namespace kolo::exec {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

struct Living {
  pid_t pid = 0;
  std::string name;
};

/// Processes with this entry in their environment, zombies left out.
std::vector<Living> marked_with(const std::string& entry) {
  std::vector<Living> found;
  for (const auto& directory : fs::directory_iterator("/proc")) {
    const std::string pid = directory.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    try {
      const std::string environment = read_file(directory.path() / "environ");
      if (('\0' + environment).find('\0' + entry + '\0') == std::string::npos) continue;
      std::string name = read_file(directory.path() / "comm");
      name.pop_back();
      found.push_back({static_cast<pid_t>(std::stol(pid)), name});
    } catch (const Error&) {
      // It has just ended.
    }
  }
  return found;
}

/// In a forked child: tasks of all kinds, until something ends it. Every end must come once.
[[noreturn]] void be_owner(const std::string& entry) {
  int status = 0;
  try {
    const auto equal = entry.find('=');
    ::setenv(entry.substr(0, equal).c_str(), entry.substr(equal + 1).c_str(), 1);
    Owner owner;
    const auto start = [&owner](TaskId id, const std::string& script) {
      Task task = Owner::shell(id, script);
      task.grace.owner_lost = 20ms;
      owner.link().start(task);
    };
    for (TaskId id = 1;; ++id) {
      start(id, "sleep 1000");
      start(++id, "trap '' TERM; setsid sleep 1000 & sleep 1000");
      start(++id, "(setsid sh -c '(sleep 1000 &)' &) ; sleep 0.01");
      const TaskId last = id;
      if (!owner.wait([&] { return owner.ends.contains(last); })) break;
      for (const auto& [task, times] : owner.times_told)
        if (times != 1) status = 2;
      if (id > 60) owner.wait([] { return false; });
    }
  } catch (const std::exception&) {
    status = 3;
  }
  ::_exit(status);
}

TEST(KillTest, NothingIsLeftBehind) {
  const int rounds = test::scaled(200);
  std::mt19937 random(20240601);
  for (int round = 0; round < rounds; ++round) {
    const std::string entry = fmt::format("KOLO_KILL_TEST={}.{}", ::getpid(), round);
    const pid_t owner = ::fork();
    if (owner == 0) be_owner(entry);
    ::poll(nullptr, 0, std::uniform_int_distribution<int>(0, 60)(random));
    // Whom: the owner, its custodian, the guard, or owner and custodian at once.
    const int whom = std::uniform_int_distribution<int>(0, 3)(random);
    for (const auto& process : marked_with(entry))
      if ((process.name == "kolo-custodian" && (whom == 1 || whom == 3)) ||
          (process.name == "kolo-guard" && whom == 2))
        ::kill(process.pid, SIGKILL);
    if (whom == 0 || whom == 3) ::kill(owner, SIGKILL);
    int status = 0;
    const Deadline deadline = Deadline::after(30s);
    // An owner whose custodian was not there yet goes on: it is ended as any owner may be.
    while (::waitpid(owner, &status, WNOHANG) == 0) {
      ::poll(nullptr, 0, 1);
      if (deadline.left() < 29500ms) ::kill(owner, SIGKILL);
    }
    if (WIFEXITED(status)) {
      EXPECT_NE(WEXITSTATUS(status), 2) << "an end was told twice; round " << round;
      EXPECT_NE(WEXITSTATUS(status), 3) << "the owner failed; round " << round;
    }
    std::vector<Living> left;
    while (!(left = marked_with(entry)).empty() && !deadline.passed()) ::poll(nullptr, 0, 2);
    for (const auto& process : left) {
      ADD_FAILURE() << "round " << round << ", whom " << whom << ": " << process.name << " "
                    << process.pid << " is left";
      ::kill(process.pid, SIGKILL);
    }
    if (HasFailure()) return;
  }
}

TEST(KillTest, AKilledGuardIsALostHostAndNotAFailedTask) {
  const std::string entry = fmt::format("KOLO_KILL_TEST={}.guard", ::getpid());
  ::setenv("KOLO_KILL_TEST", entry.substr(entry.find('=') + 1).c_str(), 1);
  Owner owner;
  ::unsetenv("KOLO_KILL_TEST");
  owner.link().start(Owner::shell(1, "echo up; sleep 1000"));
  ASSERT_TRUE(owner.wait_for_output(1, "up"));
  for (const auto& process : marked_with(entry))
    if (process.name == "kolo-guard") ::kill(process.pid, SIGKILL);
  EXPECT_TRUE(owner.wait_for_close());
  EXPECT_FALSE(owner.ends.contains(1));
  const Deadline deadline = Deadline::after(30s);
  while (!marked_with(entry).empty() && !deadline.passed()) ::poll(nullptr, 0, 2);
  EXPECT_TRUE(marked_with(entry).empty());
}

/// Stops the custodian with this entry and its guard.
void stop_both(const std::string& entry) {
  std::vector<pid_t> stopped;
  for (const auto& process : marked_with(entry))
    if (process.name.starts_with("kolo-")) stopped.push_back(process.pid);
  EXPECT_EQ(stopped.size(), 2U);
  for (const pid_t process : stopped) {
    ::kill(process, SIGSTOP);
    const Deadline deadline = Deadline::after(30s);
    while (read_file(fmt::format("/proc/{}/stat", process)).find(") T ") == std::string::npos &&
           !deadline.passed())
      ::poll(nullptr, 0, 1);
  }
}

void expect_nothing_left(const std::string& entry) {
  const Deadline deadline = Deadline::after(20s);
  std::vector<Living> left;
  while (!(left = marked_with(entry)).empty() && !deadline.passed()) ::poll(nullptr, 0, 2);
  for (const auto& process : left) {
    ADD_FAILURE() << process.name << " " << process.pid << " is left";
    ::kill(process.pid, SIGKILL);
  }
}

TEST(KillTest, ThoseThatAreStoppedEndWithTheirOwner) {
  const std::string entry = fmt::format("KOLO_KILL_TEST={}.stopped", ::getpid());
  ::setenv("KOLO_KILL_TEST", entry.substr(entry.find('=') + 1).c_str(), 1);
  {
    Owner owner;
    owner.link().start(Owner::shell(1, "echo up; sleep 1000"));
    ASSERT_TRUE(owner.wait_for_output(1, "up"));
    ::unsetenv("KOLO_KILL_TEST");
    stop_both(entry);
  }
  expect_nothing_left(entry);
}

TEST(KillTest, ThoseThatAreStoppedEndWithAnOwnerThatIsKilled) {
  const std::string entry = fmt::format("KOLO_KILL_TEST={}.killed", ::getpid());
  ::setenv("KOLO_KILL_TEST", entry.substr(entry.find('=') + 1).c_str(), 1);
  Pipe up = make_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    Owner owner;
    owner.link().start(Owner::shell(1, "echo up; sleep 1000"));
    if (owner.wait_for_output(1, "up")) write_all(up.write.get(), "up", "a pipe");
    owner.wait([] { return false; }, std::chrono::seconds(60));
    ::_exit(0);
  }
  ::unsetenv("KOLO_KILL_TEST");
  pollfd begun{up.read.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&begun, 1, 30'000), 1);
  stop_both(entry);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  expect_nothing_left(entry);
}

/// The numbers of open descriptors and of pages of the custodian.
std::pair<std::size_t, long> size_of(pid_t custodian) {
  std::size_t descriptors = 0;
  for ([[maybe_unused]] const auto& one :
       fs::directory_iterator(fmt::format("/proc/{}/fd", custodian)))
    ++descriptors;
  long total = 0, resident = 0;
  std::sscanf(read_file(fmt::format("/proc/{}/statm", custodian)).c_str(), "%ld %ld", &total,
              &resident);
  return {descriptors, resident};
}

TEST(KillTest, DescriptorsAndMemoryStayFlat) {
  const std::string entry = fmt::format("KOLO_KILL_TEST={}.flat", ::getpid());
  ::setenv("KOLO_KILL_TEST", entry.substr(entry.find('=') + 1).c_str(), 1);
  Owner owner;
  ::unsetenv("KOLO_KILL_TEST");
  const std::size_t tasks = static_cast<std::size_t>(test::scaled(5000));
  const auto run = [&](std::size_t count) {
    std::size_t begun = 0, ended = 0;
    owner.wait(
        [&] {
          ended += owner.ends.size();
          owner.ends.clear();
          owner.times_told.clear();
          owner.out.clear();
          owner.err.clear();
          owner.exits.clear();
          for (; begun < count && begun - ended < 8; ++begun)
            owner.link().start(Owner::shell(begun, "exit 0"));
          return ended == count;
        },
        std::chrono::seconds(test::scaled(200)));
    return ended;
  };
  ASSERT_EQ(run(200), 200U);
  pid_t custodian = 0;
  for (const auto& process : marked_with(entry))
    if (process.name == "kolo-custodian") custodian = process.pid;
  ASSERT_GT(custodian, 0);
  const auto [descriptors, pages] = size_of(custodian);
  ASSERT_EQ(run(tasks), tasks);
  const auto [descriptors_after, pages_after] = size_of(custodian);
  EXPECT_EQ(descriptors_after, descriptors);
  if (!test::kSanitized) {  // AddressSanitizer keeps what was freed for a while
    EXPECT_LT(pages_after, pages + 64) << "pages of memory";
  }
}

}  // namespace
}  // namespace kolo::exec
