#include "base/subprocess.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "base/errors.h"
#include "base/pipe.h"

extern "C" char** environ;

namespace kolo {
namespace {

enum class Step : std::int32_t { directory, program, other };

struct Verdict {
  Step step;
  std::int32_t error;
};

/// Everything the child needs, prepared before vfork: afterwards only system calls are safe.
struct Prepared {
  std::vector<char*> argv, environment;
  std::vector<std::string> candidates;  // full paths to try, in the order of PATH
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

[[noreturn]] void fail(int verdict, Step step) {
  Verdict message{step, errno};
  [[maybe_unused]] auto written = ::write(verdict, &message, sizeof message);
  ::_exit(127);
}

/// Puts `from` at number `to`; dup2 alone would leave close-on-exec set when they are equal.
void place(int verdict, int from, int to) {
  if (from < 0) return;
  if (from == to ? ::fcntl(from, F_SETFD, 0) != 0 : ::dup2(from, to) < 0)
    fail(verdict, Step::other);
}

/// In the child; does not return.
[[noreturn]] void become(const SpawnOptions& options, const Prepared& prepared, int verdict,
                         pid_t parent) {
  if (options.own_process_group) ::setpgid(0, 0);
  if (options.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // it died before the line above
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
  for (int i = 0; i < 3; ++i) place(verdict, streams[i], i);
  for (int fd : options.keep) place(verdict, fd, fd);
  if (options.cpus && ::sched_setaffinity(0, sizeof *options.cpus, &*options.cpus) != 0)
    fail(verdict, Step::other);
  if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0)
    fail(verdict, Step::directory);

  int reason = ENOENT;
  for (const auto& candidate : prepared.candidates) {
    ::execve(candidate.c_str(), prepared.argv.data(), prepared.environment.data());
    if (errno != ENOENT && errno != ENOTDIR) reason = errno;
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) break;
  }
  errno = reason;
  fail(verdict, Step::program);
}

/// The child borrows this process's memory until it has become the program: nothing is copied, so a
/// start costs the same however large this process is. Not inlined: what the child does below must
/// not reach the frame of spawn().
[[gnu::noinline]] pid_t start_child(const SpawnOptions& options, const Prepared& prepared,
                                    int verdict, pid_t parent) {
  // No handler of ours may run in the child; it opens its signals again itself.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::vfork();
  if (pid == 0) become(options, prepared, verdict, parent);
  const int saved = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = saved;
  return pid;
}

}  // namespace

Spawned spawn(const SpawnOptions& options) {
  KOLO_CHECK(!options.argv.empty());
  const std::string& program = options.program.empty() ? options.argv[0] : options.program;
  Prepared prepared{c_strings(options.argv), c_strings(options.environment),
                    candidates_for(program, value_of(options.environment, "PATH"))};
  Pipe verdict = make_pipe();
  const pid_t parent = ::getpid();
  const pid_t pid = start_child(options, prepared, verdict.write.get(), parent);
  if (pid < 0) throw_errno("cannot start {}", program);
  // Also here, so that the group exists before the caller signals it.
  if (options.own_process_group) ::setpgid(pid, pid);
  return {pid, std::move(verdict.read), program};
}

void Spawned::wait_until_running() {
  Verdict message{};
  ssize_t got;
  do {
    got = ::read(verdict_.get(), &message, sizeof message);
  } while (got < 0 && errno == EINTR);
  verdict_.reset();
  if (got != static_cast<ssize_t>(sizeof message)) return;
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  const char* reason = std::strerror(message.error);
  if (message.step == Step::directory)
    throw_error(ErrorCode::not_found, "cannot change to the launch directory: {}", reason);
  if (message.step == Step::program && message.error == ENOENT)
    throw_error(ErrorCode::not_found, "cannot run {}: no such program", program_);
  if (message.step == Step::program && message.error == EACCES)
    throw_error(ErrorCode::not_found, "cannot run {}: not executable", program_);
  throw_error(ErrorCode::io, "cannot run {}: {}", program_, reason);
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
