// The owner starts its own program again with KOLO_CUSTODIAN set. A constructor sees that before
// main() and lets go of all that was inherited but the link and the lock of the family, since
// others wait for the ends of those streams and files. Then it forks: the parent is the guard, the
// child the custodian. All of them inherit the lock of the family, so it is free when the last of
// them is gone.
#include "exec/start.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "base/deadline.h"
#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/host.h"
#include "base/log.h"
#include "base/log_file.h"
#include "base/mutex.h"
#include "base/named_lock.h"
#include "base/socket.h"
#include "base/subprocess.h"
#include "exec/custodian.h"
#include "exec/process_tree.h"

namespace kolo::exec {
namespace {

using namespace std::chrono_literals;

constexpr const char* kVariable = "KOLO_CUSTODIAN";  // "LINK,LOCK": numbers of descriptors

struct CustodianProgram {
  Mutex mutex;
  std::string path KOLO_GUARDED_BY(mutex) = "/proc/self/exe";
};
CustodianProgram& custodian_program() {
  static CustodianProgram program;
  return program;
}

/// When nobody of an earlier family holds the lock any more; invalid after a warning where that
/// takes too long, and where it cannot be had at all.
template <class TryLock>
Fd wait_for_family(std::string_view name, TryLock&& try_lock) {
  const Deadline deadline = Deadline::after(kLongestDeath);
  for (;;) {
    if (Fd lock = try_lock(); lock.valid()) return lock;
    if (deadline.passed()) {
      log::warning("processes of an earlier run still use {}", name);
      return {};
    }
    ::poll(nullptr, 0, 1);
  }
}

/// Standard streams of a custodian lead nowhere: whoever reads the owner's output must see its end
/// when the owner ends.
void drop_standard_streams() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, stream);
  if (null > STDERR_FILENO) ::close(null);
}

void close_all_but(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned first = 3;
  for (const int fd : kept) {
    if (fd < 3) continue;
    const auto number = static_cast<unsigned>(fd);
    if (number > first) ::close_range(first, number - 1, 0);
    first = number + 1;
  }
  ::close_range(first, ~0U, 0);
}

/// Whether the guard passes SIGTERM on. A batch system that cancels a job sends it to every process
/// of it, where the owner decides what ends; a custodian that stands is ended by it, and the guard
/// is the process that people know.
enum class Sigterm { ignored, passed_on };

/// Waits for the custodian's end, and takes those of orphans. Whoever continues this process
/// continues the custodian, too. The custodian's status.
int wait_for_custodian(pid_t custodian, Sigterm sigterm) {
  sigset_t awaited, before;
  ::sigemptyset(&awaited);
  for (const int signal : {SIGCHLD, SIGTERM, SIGCONT}) ::sigaddset(&awaited, signal);
  ::sigprocmask(SIG_BLOCK, &awaited, &before);
  int status = 0;
  for (pid_t ended = 0; ended != custodian && ended >= 0;) {
    ended = ::waitpid(-1, &status, WNOHANG);
    if (ended != 0) continue;
    const int signal = ::sigwaitinfo(&awaited, nullptr);
    if (signal == SIGCONT || (signal == SIGTERM && sigterm == Sigterm::passed_on))
      ::kill(custodian, signal);
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return status;
}

/// The guard's whole life: returns in the custodian, its child.
void guard_a_custodian(int family_lock, Sigterm sigterm = Sigterm::ignored) {
  adopt_orphans();
  ::signal(SIGCHLD, SIG_DFL);  // a parent that ignored it would cost us the custodian's end
  const pid_t guard = ::getpid();
  const pid_t custodian = ::fork();
  if (custodian < 0) throw_errno("cannot start a custodian");
  if (custodian == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != guard) ::_exit(1);
    return;
  }
  ::prctl(PR_SET_NAME, "kolo-guard");
  // If both are stopped, they still end with their owner.
  if (sigterm == Sigterm::ignored) ::prctl(PR_SET_PDEATHSIG, SIGCONT);
  for (const int signal : {SIGINT, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2}) ::signal(signal, SIG_IGN);
  if (sigterm == Sigterm::ignored) ::signal(SIGTERM, SIG_IGN);
  // The owner must see the custodian's end when the custodian ends.
  drop_standard_streams();
  close_all_but({family_lock});
  const int status = wait_for_custodian(custodian, sigterm);
  kill_descendants();
  if (WIFSIGNALED(status)) {  // who waits for this process learns how the custodian ended
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::signal(WTERMSIG(status), SIG_DFL);
    ::raise(WTERMSIG(status));
  }
  ::_exit(exit_code_of(status));
}

int be_custodian(Channel channel, Fd family_lock) {
  ::prctl(PR_SET_NAME, "kolo-custodian");
  Custodian custodian(std::move(family_lock));
  custodian.serve(std::move(channel));
  return custodian.run();
}

/// Before main(), and before the constructors of the program's own objects.
[[gnu::constructor(101)]] void become_a_custodian_if_asked() {
  const char* words = std::getenv(kVariable);
  if (words == nullptr) return;
  int link = -1, lock = -1;
  if (std::sscanf(words, "%d,%d", &link, &lock) != 2 || link < 3) return;
  ::unsetenv(kVariable);
  int status = 1;
  try {
    ::setsid();  // Ctrl-C in the owner's terminal reaches the owner alone
    drop_standard_streams();
    // Nothing of the owner's stays open here: databases, terminals, other tasks' pipes.
    close_all_but({link, lock});
    Fd family_lock(lock);
    for (const int fd : {link, lock})
      if (fd >= 0) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    guard_a_custodian(lock);
    status = be_custodian(Channel(Fd(link)), std::move(family_lock));
  } catch (const std::exception&) {
    // The owner sees the closed socket; the tasks die with this process.
  }
  ::_exit(status);
}

}  // namespace

void set_custodian_program(const std::filesystem::path& program) {
  auto& own = custodian_program();
  const MutexLock lock(own.mutex);
  own.path = program;
}

LocalCustodian start_local_custodian(const Fd& family_lock) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw_errno("cannot make a socket for the custodian");
  Fd ours(ends[0]), theirs(ends[1]);
  SpawnOptions options;
  {
    auto& own = custodian_program();
    const MutexLock lock(own.mutex);
    options.program = own.path;
  }
  options.argv = {"kolo-custodian"};
  options.environment = current_environment();
  std::erase_if(options.environment, [](const std::string& entry) {
    return entry.starts_with(std::string(kVariable) + "=");
  });
  options.environment.push_back(
      fmt::format("{}={},{}", kVariable, theirs.get(), family_lock.get()));
  options.keep = {theirs.get()};
  if (family_lock.valid()) options.keep.push_back(family_lock.get());
  return {spawn(options), std::move(ours)};
}

int be_custodian_of_standard_streams() {
  // Copies: numbers 0 and 1 then stay free of what the custodian does with these.
  Fd in(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  Fd out(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  guard_a_custodian(/*family_lock=*/-1);
  drop_standard_streams();
  return be_custodian(Channel(std::move(in), std::move(out)), {});
}

pid_t start_standing_custodian(Fd listener, Standing standing, Fd family_lock) {
  const pid_t child = ::fork();
  if (child < 0) throw_errno("cannot start a custodian");
  if (child > 0) return child;
  int status = 1;
  try {
    ::setsid();
    drop_standard_streams();
    close_all_but({listener.get(), family_lock.get()});
    guard_a_custodian(family_lock.get(), Sigterm::passed_on);
    ::prctl(PR_SET_NAME, "kolo-custodian");
    std::optional<log::File> log;
    if (!standing.log.empty()) log.emplace(standing.log);
    Custodian custodian(std::move(family_lock));
    custodian.listen(std::move(listener), std::move(standing));
    status = custodian.run();
  } catch (const std::exception&) {
    // Whoever connects sees that nobody listens.
  }
  ::_exit(status);
}

std::string address_for_others() {
  std::istringstream words(environment("SSH_CONNECTION").value_or(""));
  std::string client, port, server;  // "client-address client-port server-address server-port"
  // A batch job may have inherited the variable of the shell that it was submitted from.
  if (words >> client >> port >> server && is_own_address(SocketAddress::from_numeric(server)))
    return server;
  for (const auto& name : {environment("SLURMD_NODENAME").value_or(""), host_name()})
    if (!name.empty())
      for (const auto& address : resolve_host(name))
        if (!address.is_loopback() && is_own_address(address)) return address.host();
  for (const auto& interface : network_interfaces())
    if (!interface.address.is_loopback()) return interface.address.host();
  return SocketAddress::loopback().host();
}

Fd lock_family(const std::filesystem::path& directory) {
  Fd file(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno != EWOULDBLOCK && errno != EINTR) return {};  // a file system without locks
  return wait_for_family(directory.string(), [&file] {
    return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 ? std::move(file) : Fd();
  });
}

// A file where no other user can take it, since whoever holds it holds up the next session. It may
// be on a disk that hosts share.
HostFamily lock_family_of_host(std::string_view name) {
  HostFamily family;
  try {
    const std::filesystem::path folder = state_folder() / "families";
    make_private_directory(folder);
    family.file =
        folder / fmt::format("{:016x}@{}", std::hash<std::string_view>()(name), host_name());
    family.lock = wait_for_family(name, [&family] { return lock_named_file(family.file); });
  } catch (const Error& error) {
    log::warning("processes that an earlier run may have left are not waited for: {}",
                 error.message());
  }
  return family;
}

}  // namespace kolo::exec
