#include "tune/executor/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <set>

#include "base/deadline.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/frames.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "exec/environment.h"
#include "exec/process_tree.h"

namespace kolo::tune {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLargestMessage = 8U << 20;
/// A killed process ends in no time, unless the kernel waits for a disk or a server on its behalf.
constexpr auto kLongestDeath = 10s;
enum class Order : std::uint8_t { start = 1, signal = 2 };

void write_texts(ByteWriter& writer, const std::vector<std::string>& texts) {
  writer.u32(static_cast<std::uint32_t>(texts.size()));
  for (const auto& text : texts) writer.string(text);
}
std::vector<std::string> read_texts(ByteReader& reader) {
  std::vector<std::string> texts(reader.count(4));
  for (auto& text : texts) text = reader.string();
  return texts;
}

/// A message and, if it is not -1, a descriptor. The link keeps messages apart.
bool send_message(int link, std::string_view bytes, int descriptor) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(link, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

/// A lock that the keeper and everything it starts inherit: it is free when all of them have gone.
/// Without one (not every file system has locks) the study goes on all the same.
Fd lock_for_a_family(const std::filesystem::path& directory) {
  Fd lock(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Deadline deadline = Deadline::after(kLongestDeath);
  while (lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      lock.reset();
    } else if (deadline.passed()) {
      log::warning("{} is still in use by processes of an earlier run of the study",
                   directory.string());
      lock.reset();
    } else {
      ::poll(nullptr, 0, 1);
    }
  }
  return lock;
}

/// What /proc has of a process under this name; "" for one that is ending.
std::string text_of(pid_t pid, std::string_view name) {
  try {
    return read_file(fmt::format("/proc/{}/{}", pid, name));
  } catch (const Error&) {
    return {};
  }
}
bool is_ending(pid_t pid) {
  return text_of(pid, "environ").empty() && text_of(pid, "cmdline").empty();
}
bool has_mark(pid_t pid, const std::string& mark) {
  return ('\0' + text_of(pid, "environ")).find('\0' + mark + '\0') != std::string::npos;
}

/// The keeper's own life, in the forked child.
class KeeperProcess {
 public:
  KeeperProcess(Fd link, Fd lock) : link_(std::move(link)), lock_(std::move(lock)) {
    ::setsid();
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, stream);
    // Nothing of the controller's stays open here: databases, terminals, other studies' pipes.
    unsigned first = 3;
    std::array<Fd*, 2> kept{&link_, &lock_};
    for (Fd* one : kept)
      if (one->valid()) one->reset(::fcntl(one->get(), F_DUPFD_CLOEXEC, 3));
    std::sort(kept.begin(), kept.end(),
              [](Fd* left, Fd* right) { return left->get() < right->get(); });
    for (const Fd* one : kept) {
      if (!one->valid()) continue;
      const auto number = static_cast<unsigned>(one->get());
      if (number > first) ::close_range(first, number - 1, 0);
      first = number + 1;
    }
    ::close_range(first, ~0U, 0);
    exec::adopt_orphans();
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGCHLD);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
    ::signal(SIGCHLD, SIG_DFL);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    children_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    environment_ = exec::without_launcher_variables(current_environment());
  }

  [[noreturn]] void live() {
    for (;;) {
      pollfd events[] = {{link_.get(), POLLIN, 0}, {children_.get(), POLLIN, 0}};
      constexpr int kLookAgain = 100;
      if (::poll(events, 2, endings_.empty() ? -1 : kLookAgain) < 0 && errno != EINTR) break;
      if (events[1].revents != 0) reap();
      tell_endings();
      if (events[0].revents != 0 && !obey()) break;
    }
    // The controller has gone, and with it the trials.
    while (exec::has_children()) {
      exec::signal_descendants(SIGKILL);
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      ::poll(nullptr, 0, 1);
    }
    ::_exit(0);
  }

 private:
  bool obey() {
    iovec part{buffer_.get(), kLargestMessage};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(link_.get(), &message, MSG_CMSG_CLOEXEC);
    if (got <= 0) return got < 0 && errno == EINTR;
    Fd descriptor;
    if (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
      descriptor.reset(fd);
    }
    ByteReader reader({buffer_.get(), static_cast<std::size_t>(got)});
    const auto order = static_cast<Order>(reader.u8());
    const RunId id{static_cast<std::int64_t>(reader.u64()),
                   static_cast<std::int64_t>(reader.u64())};
    if (order == Order::start)
      start(id, reader, std::move(descriptor));
    else
      signal(id, static_cast<int>(reader.u32()));
    return true;
  }

  void start(RunId id, ByteReader& reader, Fd descriptor) {
    SpawnOptions options;
    options.argv = read_texts(reader);
    auto additions = read_texts(reader);
    options.directory = reader.string();
    const std::string out_path = reader.string(), err_path = reader.string();
    const std::string variable = reader.string();
    std::string mark = reader.string();
    if (descriptor.valid()) additions.push_back(fmt::format("{}={}", variable, descriptor.get()));
    options.environment = exec::merge_environment(environment_, additions);
    try {
      const Fd out = open_log(out_path), err = open_log(err_path);
      options.standard_output = out.get();
      options.standard_error = err.get();
      for (const Fd* one : {&descriptor, &lock_})
        if (one->valid()) options.keep.push_back(one->get());
      options.own_process_group = true;
      options.die_with_parent = true;
      Spawned child = spawn(options);
      child.wait_until_running();
      programs_[child.pid()] = {id, std::move(mark)};
    } catch (const Error& error) {
      tell(id, 0, error.message());
    }
  }

  static Fd open_log(const std::string& path) {
    Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!file.valid()) throw_errno("cannot write {}", path);
    return file;
  }

  void signal(RunId id, int signal) {
    for (const auto& [pid, program] : programs_)
      if (program.id == id) ::kill(-pid, signal);
  }

  void reap() {
    signalfd_siginfo info{};
    while (::read(children_.get(), &info, sizeof info) == sizeof info) {
    }
    int status = 0;
    while (const pid_t pid = ::waitpid(-1, &status, WNOHANG)) {
      if (pid < 0) return;
      for (auto& ending : endings_) ending.dying.erase(pid);
      const auto found = programs_.find(pid);
      if (found == programs_.end()) continue;  // what a program had left
      ::kill(-pid, SIGKILL);                   // what it left in its group
      endings_.push_back({std::move(found->second), status, Deadline::after(kLongestDeath), {}});
      programs_.erase(found);
    }
  }

  /// What a program had started became a child of this process when the program ended, and so on
  /// downwards.
  void tell_endings() {
    if (endings_.empty()) return;
    auto orphans = exec::children();
    std::erase_if(orphans, [this](pid_t pid) { return programs_.contains(pid); });
    std::erase_if(endings_, [&](Ending& ending) {
      for (const pid_t pid : orphans) {
        if (ending.dying.contains(pid)) continue;
        const bool marked = has_mark(pid, ending.program.mark);
        if (marked) ::kill(pid, SIGKILL);
        // Of one that is ending already nobody knows whose it was.
        if (marked || is_ending(pid)) ending.dying.insert(pid);
      }
      if (!ending.dying.empty() && !ending.until.passed()) return false;
      tell(ending.program.id, ending.status, "");
      return true;
    });
  }

  void tell(RunId id, int status, const std::string& error) {
    ByteWriter writer;
    writer.u64(static_cast<std::uint64_t>(id.trial)).u64(static_cast<std::uint64_t>(id.run));
    writer.i32(status).string(error);
    send_message(link_.get(), writer.bytes(), -1);
  }

  struct Program {
    RunId id;
    std::string mark;
  };
  /// A program that has ended, but not yet all that it has left.
  struct Ending {
    Program program;
    int status;
    Deadline until;
    std::set<pid_t> dying;  // children of this process, until they are waited for
  };

  Fd link_, lock_, children_;
  // Not touched beyond what a message needs, so that forks stay cheap.
  std::unique_ptr<char[]> buffer_{new char[kLargestMessage]};
  std::vector<std::string> environment_;
  std::map<pid_t, Program> programs_;
  std::vector<Ending> endings_;
};

}  // namespace

Keeper::Keeper(const std::filesystem::path& study_directory) {
  Fd lock = lock_for_a_family(study_directory);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw_errno("cannot make a socket for the keeper of trials");
  link_ = Fd(ends[0]);
  Fd other(ends[1]);
  for (const int end : ends) {
    const int bytes = 4 << 20;
    ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  }
  pid_ = ::fork();
  if (pid_ < 0) throw_errno("cannot start the keeper of trials");
  if (pid_ == 0) {
    link_.reset();
    try {
      KeeperProcess(std::move(other), std::move(lock)).live();
    } catch (...) {
      ::_exit(1);
    }
  }
}

Keeper::~Keeper() {
  link_.reset();
  while (pid_ > 0 && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool Keeper::start(const KeptProgram& program) {
  ByteWriter writer;
  writer.u8(static_cast<std::uint8_t>(Order::start));
  writer.u64(static_cast<std::uint64_t>(program.id.trial));
  writer.u64(static_cast<std::uint64_t>(program.id.run));
  write_texts(writer, program.argv);
  write_texts(writer, program.environment);
  writer.string(program.directory.string());
  writer.string(program.out.string()).string(program.err.string());
  writer.string(program.descriptor_variable).string(program.mark);
  return send_message(link_.get(), writer.bytes(), program.descriptor);
}

bool Keeper::signal(RunId id, int signal) {
  ByteWriter writer;
  writer.u8(static_cast<std::uint8_t>(Order::signal));
  writer.u64(static_cast<std::uint64_t>(id.trial)).u64(static_cast<std::uint64_t>(id.run));
  writer.u32(static_cast<std::uint32_t>(signal));
  return send_message(link_.get(), writer.bytes(), -1);
}

std::optional<KeeperNews> Keeper::read(bool& gone) {
  std::array<char, 64U << 10> buffer{};
  const ssize_t got = ::recv(link_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  if (got <= 0) return std::nullopt;
  ByteReader reader({buffer.data(), static_cast<std::size_t>(got)});
  KeeperNews news;
  news.id.trial = static_cast<std::int64_t>(reader.u64());
  news.id.run = static_cast<std::int64_t>(reader.u64());
  news.status = reader.i32();
  news.error = reader.string();
  return news;
}

}  // namespace kolo::tune
