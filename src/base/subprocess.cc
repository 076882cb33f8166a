// spawn() prepares arguments, environment and paths first, and then clones with CLONE_VM and
// CLONE_VFORK. The child shares the memory but has its own descriptor table and signal handlers. It
// makes system calls only, because the memory belongs to the parent, whose other threads continue.
// It resets signals, places descriptors, sets the processors and the directory, and tries the paths
// in turn. Every other descriptor must have close-on-exec. If a step fails, the child writes the
// reason into the shared memory, and the parent, which has waited, turns it into an error.
#include "base/subprocess.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#include "base/errors.h"

extern "C" char** environ;

namespace kolo {
namespace {

/// The child runs on borrowed memory, where the bookkeeping of the sanitizers would be the
/// parent's.
#define KOLO_IN_CHILD __attribute__((no_sanitize("address", "thread")))

enum class Step { none, directory, program, other };

/// Why the child could not become the program.
struct Failure {
  Step step = Step::none;
  int error = 0;
};

#ifdef __SANITIZE_THREAD__
// ThreadSanitizer takes each clone() for a fork() and begins its bookkeeping anew in the child. In
// borrowed memory that would be the parent's. So the child has a copy, and shares the failure
// alone.
constexpr int kMemory = 0;
std::shared_ptr<Failure> make_failure() {
  void* const memory =
      ::mmap(nullptr, sizeof(Failure), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw_errno("cannot share memory with a child");
  return {new (memory) Failure, [](Failure* failure) { ::munmap(failure, sizeof *failure); }};
}
#else
constexpr int kMemory = CLONE_VM;
std::unique_ptr<Failure> make_failure() { return std::make_unique<Failure>(); }
#endif

/// Everything the child needs, prepared before it exists: afterwards only system calls are safe.
struct Start {
  const SpawnOptions& options;
  pid_t parent;
  std::vector<char*> argv, environment;
  std::vector<std::string> candidates;  // full paths to try, in the order of PATH
  Failure& failure;                     // written by the child
};

std::vector<char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const auto& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string value_of(const std::vector<std::string>& environment, std::string_view name) {
  for (const auto& entry : environment)
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  return {};
}

std::vector<std::string> candidates_for(const std::string& name, std::string_view search_path) {
  if (name.find('/') != std::string::npos) return {name};
  std::vector<std::string> paths;
  while (true) {
    const auto colon = search_path.find(':');
    std::string directory(search_path.substr(0, colon));
    paths.push_back((directory.empty() ? "." : directory) + "/" + name);
    if (colon == std::string_view::npos) return paths;
    search_path.remove_prefix(colon + 1);
  }
}

KOLO_IN_CHILD int fail(Start& start, Step step, int error) {
  start.failure.step = step;
  start.failure.error = error;
  return 127;
}

/// Puts `from` at number `to`; dup2 alone would leave close-on-exec set when they are equal.
KOLO_IN_CHILD bool place(int from, int to) {
  return from < 0 || (from == to ? ::fcntl(from, F_SETFD, 0) == 0 : ::dup2(from, to) >= 0);
}

/// In the child; returns when the program could not be run.
KOLO_IN_CHILD int become(void* argument) {
  Start& start = *static_cast<Start*>(argument);
  const SpawnOptions& options = start.options;
  if (options.own_process_group) ::setpgid(0, 0);
  if (options.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != start.parent) return 127;  // it died before the line above
  }
  // Caught signals fall back to their defaults on exec, ignored and blocked ones do not.
  for (int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGQUIT, SIGUSR1, SIGUSR2})
    ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  // The given descriptors could sit on 0…2 themselves; move such out of the way first.
  int streams[3] = {options.standard_input, options.standard_output, options.standard_error};
  for (int i = 0; i < 3; ++i)
    if (streams[i] >= 0 && streams[i] < 3 && streams[i] != i)
      streams[i] = ::fcntl(streams[i], F_DUPFD_CLOEXEC, 3);
  if (streams[0] < 0) streams[0] = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (int i = 0; i < 3; ++i)
    if (!place(streams[i], i)) return fail(start, Step::other, errno);
  for (int fd : options.keep)
    if (!place(fd, fd)) return fail(start, Step::other, errno);
  if (options.cpus && ::sched_setaffinity(0, sizeof *options.cpus, &*options.cpus) != 0)
    return fail(start, Step::other, errno);
  if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0)
    return fail(start, Step::directory, errno);

  int reason = ENOENT;
  for (const auto& candidate : start.candidates) {
    ::execve(candidate.c_str(), start.argv.data(), start.environment.data());
    if (errno != ENOENT && errno != ENOTDIR) reason = errno;
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) break;
  }
  return fail(start, Step::program, reason);
}

/// The child borrows this process's memory, and this thread waits, until it has become the program
/// or has failed, as with posix_spawn(): nothing is copied, so a start costs the same however large
/// this process is, and the child can leave its reason there.
pid_t start_child(Start& start) {
  constexpr std::size_t kStackBytes = 64 << 10;
  const std::unique_ptr<std::byte[]> stack(new std::byte[kStackBytes]);
  // No handler of ours may run in the child; it opens its signals again itself.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid =
      ::clone(become, stack.get() + kStackBytes, kMemory | CLONE_VFORK | SIGCHLD, &start);
  const int saved = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = saved;
  return pid;
}

}  // namespace

pid_t spawn(const SpawnOptions& options) {
  KOLO_CHECK(!options.argv.empty());
  const std::string& program = options.program.empty() ? options.argv[0] : options.program;
  const auto failure = make_failure();
  Start start{.options = options,
              .parent = ::getpid(),
              .argv = c_strings(options.argv),
              .environment = c_strings(options.environment),
              .candidates = candidates_for(program, value_of(options.environment, "PATH")),
              .failure = *failure};
  const pid_t pid = start_child(start);
  if (pid < 0) throw_errno("cannot start {}", program);
  if (failure->step == Step::none) return pid;
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  const char* reason = std::strerror(failure->error);
  if (failure->step == Step::directory)
    throw_error(ErrorCode::not_found, "cannot change to the launch directory: {}", reason);
  if (failure->step == Step::program && failure->error == ENOENT)
    throw_error(ErrorCode::not_found, "cannot run {}: no such program", program);
  if (failure->step == Step::program && failure->error == EACCES)
    throw_error(ErrorCode::not_found, "cannot run {}: not executable", program);
  throw_error(ErrorCode::io, "cannot run {}: {}", program, reason);
}

std::filesystem::path find_program(const std::string& name, const std::string& search_path,
                                   const std::filesystem::path& directory) {
  bool exists = false;
  for (const auto& candidate : candidates_for(name, search_path)) {
    std::filesystem::path path = directory / candidate;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored) || std::filesystem::is_directory(path, ignored))
      continue;
    if (::access(path.c_str(), X_OK) == 0) return path;
    exists = true;
  }
  throw_error(ErrorCode::not_found, "cannot run {}: {}", name,
              exists ? "it is not executable; try: chmod +x" : "no such program");
}

std::vector<std::string> current_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    entries.emplace_back(*entry);
  return entries;
}

std::string describe_wait_status(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                       ::strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) == 0) return "exited";
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace kolo
