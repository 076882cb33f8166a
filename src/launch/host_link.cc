#include "launch/host_link.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "base/env.h"
#include "base/errors.h"
#include "base/socket.h"
#include "base/subprocess.h"
#include "launch/agent.h"

namespace kolo::launch {
namespace {

/// What a login shell may print before the agent speaks.
constexpr std::size_t kNoiseLimit = 1U << 20;
constexpr std::size_t kErrorTextLimit = 16U << 10;

struct Pipe {
  Fd read, write;
};
Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("cannot create a pipe");
  return {Fd(ends[0]), Fd(ends[1])};
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (char c : text) {
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  }
  return result + "'";
}

/// In the forked child. Detached from the terminal, so that Ctrl-C reaches the launcher alone.
[[noreturn]] void be_agent(Fd in, Fd out) {
  ::setsid();
  // Whoever reads the launcher's output must see its end when the launcher ends.
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, stream);
  int status = 1;
  try {
    status = Agent(std::move(in), std::move(out)).run();
  } catch (const std::exception&) {
    // The launcher sees the closed pipe; the ranks die with this process.
  }
  ::_exit(status);
}

}  // namespace

SshOptions ssh_from_environment(const std::string& kolo) {
  SshOptions ssh;
  if (const auto command = environment("KOLO_SSH")) {
    std::istringstream words(*command);
    ssh.command.assign(std::istream_iterator<std::string>(words), {});
    if (ssh.command.empty())
      throw_error(ErrorCode::invalid_argument, "KOLO_SSH: the command is empty");
  }
  if (const auto port = setting_integer("SSH_PORT")) ssh.port = static_cast<int>(*port);
  ssh.identity_file = environment("KOLO_SSH_IDENTITY_FILE").value_or("");
  ssh.remote_kolo = environment("KOLO_REMOTE_KOLO").value_or(kolo);
  return ssh;
}

std::vector<std::string> ssh_command(const SshOptions& options, const std::string& host,
                                     std::string_view helper) {
  std::vector<std::string> argv = options.command;
  for (const std::string& setting :
       {std::string("BatchMode=yes"), std::string("StrictHostKeyChecking=accept-new"),
        std::string("LogLevel=ERROR"), std::string("ServerAliveInterval=5"),
        std::string("ServerAliveCountMax=3"),
        fmt::format("ConnectTimeout={}", options.connect_timeout_seconds)}) {
    argv.push_back("-o");
    argv.push_back(setting);
  }
  argv.insert(argv.end(), {"-T", "-x"});
  if (options.port) argv.insert(argv.end(), {"-p", std::to_string(*options.port)});
  if (!options.identity_file.empty()) argv.insert(argv.end(), {"-i", options.identity_file});
  argv.insert(argv.end(),
              {"--", host, fmt::format("exec {} {}", quoted(options.remote_kolo), helper)});
  return argv;
}

std::unique_ptr<HostLink> HostLink::to_this_machine(Placement placement) {
  std::unique_ptr<HostLink> link(new HostLink(std::move(placement), false));
  Pipe down = make_pipe(), up = make_pipe();
  link->pid_ = ::fork();
  if (link->pid_ < 0) throw_errno("cannot start the agent of this host");
  if (link->pid_ == 0) {
    down.write.reset();
    up.read.reset();
    be_agent(std::move(down.read), std::move(up.write));
  }
  link->to_ = std::move(down.write);
  link->from_ = std::move(up.read);
  set_non_blocking(link->to_.get());
  set_non_blocking(link->from_.get());
  return link;
}

std::unique_ptr<HostLink> HostLink::by_ssh(Placement placement, const SshOptions& options) {
  std::unique_ptr<HostLink> link(new HostLink(std::move(placement), true));
  Pipe down = make_pipe(), up = make_pipe(), errors = make_pipe();
  SpawnOptions spawn_options;
  spawn_options.argv = ssh_command(options, link->placement_.host);
  spawn_options.environment = current_environment();
  spawn_options.standard_input = down.read.get();
  spawn_options.standard_output = up.write.get();
  spawn_options.standard_error = errors.write.get();
  // Ctrl-C must not reach it: the launcher still needs it to stop the ranks over there.
  spawn_options.own_process_group = true;
  Spawned child = spawn(spawn_options);
  child.wait_until_running();
  link->pid_ = child.pid();
  link->to_ = std::move(down.write);
  link->from_ = std::move(up.read);
  link->errors_ = std::move(errors.read);
  for (int fd : {link->to_.get(), link->from_.get(), link->errors_.get()}) set_non_blocking(fd);
  return link;
}

HostLink::~HostLink() {
  if (pid_ <= 0) return;
  kill();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void HostLink::kill() noexcept {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

void HostLink::send(std::string_view frame) {
  const bool idle = outbox_.empty();
  if (!to_.valid()) return;
  outbox_.append(frame);
  if (idle) flush();
}

void HostLink::flush() {
  std::size_t sent = 0;
  while (sent < outbox_.size()) {
    ssize_t written = ::write(to_.get(), outbox_.data() + sent, outbox_.size() - sent);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) break;
    if (written < 0) {  // its reading end will tell
      to_.reset();
      outbox_.clear();
      return;
    }
    sent += static_cast<std::size_t>(written);
  }
  outbox_.erase(0, sent);
}

void HostLink::skip_to_greeting(std::string_view bytes) {
  before_greeting_.append(bytes);
  const auto at = before_greeting_.find(kAgentGreeting);
  if (at == std::string::npos) {
    if (before_greeting_.size() > kNoiseLimit)
      throw_error(ErrorCode::corruption,
                  "its login shell prints too much and no agent of kolo answers; --remote-kolo "
                  "says where kolo is there");
    return;
  }
  greeted_ = true;
  parser_.feed(std::string_view(before_greeting_).substr(at + kAgentGreeting.size()));
  before_greeting_.clear();
}

std::vector<Frame> HostLink::receive() {
  std::vector<Frame> frames;
  char chunk[65536];
  ssize_t got = ::read(from_.get(), chunk, sizeof chunk);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return frames;
  if (got <= 0) {
    from_.reset();
    return frames;
  }
  const std::string_view bytes(chunk, static_cast<std::size_t>(got));
  if (greeted_)
    parser_.feed(bytes);
  else
    skip_to_greeting(bytes);
  while (auto frame = parser_.next()) frames.push_back(std::move(*frame));
  return frames;
}

void HostLink::read_errors() {
  char chunk[4096];
  ssize_t got = ::read(errors_.get(), chunk, sizeof chunk);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    errors_.reset();
    return;
  }
  error_text_.append(chunk, static_cast<std::size_t>(got));
  if (error_text_.size() > kErrorTextLimit)
    error_text_.erase(0, error_text_.size() - kErrorTextLimit);
}

std::string HostLink::reason_of_end() {
  int status = 0;
  if (pid_ > 0) {
    // It has closed its output; an ssh that hangs nevertheless is ended.
    pollfd poll{errors_.get(), POLLIN, 0};
    const Deadline deadline = Deadline::after(std::chrono::seconds(2));
    while (errors_.valid() && !deadline.passed()) {
      poll.fd = errors_.get();
      if (::poll(&poll, 1, deadline.poll_timeout_ms()) > 0) read_errors();
    }
    if (errors_.valid()) kill();
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }
  // The last line says it: before it are warnings and banners.
  std::string_view text = error_text_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const auto start = text.find_last_of("\r\n");
  if (start != std::string_view::npos) text.remove_prefix(start + 1);
  if (!text.empty()) return std::string(text);
  return fmt::format("{} {}", is_remote_ ? "ssh" : "the agent", describe_wait_status(status));
}

}  // namespace kolo::launch
