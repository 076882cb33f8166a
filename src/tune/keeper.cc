#include "tune/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>

#include "base/errors.h"
#include "base/frames.h"
#include "base/subprocess.h"
#include "launch/environment.h"
#include "launch/process_tree.h"

namespace kolo::tune {
namespace {

constexpr std::size_t kLargestMessage = 8U << 20;
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

/// The keeper's own life, in the forked child.
class KeeperProcess {
 public:
  explicit KeeperProcess(Fd link) : link_(std::move(link)) {
    ::setsid();
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, stream);
    // Nothing of the controller's stays open here: databases, terminals, other studies' pipes.
    const int keep = ::fcntl(link_.get(), F_DUPFD_CLOEXEC, 3);
    link_.reset(keep);
    if (keep > 3) ::close_range(3, static_cast<unsigned>(keep) - 1, 0);
    ::close_range(static_cast<unsigned>(keep) + 1, ~0U, 0);
    launch::adopt_orphans();
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGCHLD);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
    ::signal(SIGCHLD, SIG_DFL);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    children_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    environment_ = launch::without_launcher_variables(current_environment());
  }

  [[noreturn]] void live() {
    for (;;) {
      pollfd events[] = {{link_.get(), POLLIN, 0}, {children_.get(), POLLIN, 0}};
      if (::poll(events, 2, -1) < 0 && errno != EINTR) break;
      if (events[1].revents != 0) reap();
      if (events[0].revents != 0 && !obey()) break;
    }
    // The controller has gone, and with it the trials.
    while (launch::has_children()) {
      launch::signal_descendants(SIGKILL);
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
    if (descriptor.valid()) additions.push_back(fmt::format("{}={}", variable, descriptor.get()));
    options.environment = launch::merge_environment(environment_, additions);
    try {
      const Fd out = open_log(out_path), err = open_log(err_path);
      options.standard_output = out.get();
      options.standard_error = err.get();
      if (descriptor.valid()) options.keep.push_back(descriptor.get());
      options.own_process_group = true;
      options.die_with_parent = true;
      Spawned child = spawn(options);
      child.wait_until_running();
      programs_[child.pid()] = id;
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
      if (program == id) ::kill(-pid, signal);
  }

  void reap() {
    signalfd_siginfo info{};
    while (::read(children_.get(), &info, sizeof info) == sizeof info) {
    }
    int status = 0;
    while (const pid_t pid = ::waitpid(-1, &status, WNOHANG)) {
      if (pid < 0) return;
      const auto found = programs_.find(pid);
      if (found == programs_.end()) continue;  // an orphan of a trial
      ::kill(-pid, SIGKILL);                   // what it left in its group
      tell(found->second, status, "");
      programs_.erase(found);
    }
  }

  void tell(RunId id, int status, const std::string& error) {
    ByteWriter writer;
    writer.u64(static_cast<std::uint64_t>(id.trial)).u64(static_cast<std::uint64_t>(id.run));
    writer.i32(status).string(error);
    send_message(link_.get(), writer.bytes(), -1);
  }

  Fd link_, children_;
  // Not touched beyond what a message needs, so that forks stay cheap.
  std::unique_ptr<char[]> buffer_{new char[kLargestMessage]};
  std::vector<std::string> environment_;
  std::map<pid_t, RunId> programs_;
};

}  // namespace

Keeper::Keeper() {
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
      KeeperProcess(std::move(other)).live();
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
  writer.string(program.descriptor_variable);
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
