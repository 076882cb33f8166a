// Three ways lead to a custodian: a socket pair to a child of this process, the pipes of a command
// such as ssh, and a connection to a custodian that stands. They differ in their ends. A child of
// this process is waited for, because it ends when nothing of its tasks is left. A command is not,
// once the custodian behind it has answered: that one ends its tasks by itself. A custodian that
// stands goes on.
#include "exec/link.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <array>

#include "base/errors.h"
#include "base/pipe.h"
#include "base/socket.h"
#include "base/subprocess.h"
#include "exec/start.h"

namespace kolo::exec {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kErrorTextLimit = 16U << 10;
/// A command that has closed its output and does not end is ended.
constexpr auto kCommandEnd = 2s;

/// One that was stopped could not end.
void wait_for_child(pid_t pid, int& status) {
  ::kill(pid, SIGCONT);
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
}

/// The last line says it: before it are warnings and banners.
std::string_view last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const auto start = text.find_last_of("\r\n");
  if (start != std::string_view::npos) text.remove_prefix(start + 1);
  return text;
}

std::optional<Event> event_of(const Frame& frame) {
  switch (static_cast<Kind>(frame.type)) {
    case Kind::hello: return decode_hello(frame.payload);
    case Kind::output: return decode_output(frame.payload);
    case Kind::exited: return decode_exited(frame.payload);
    case Kind::ended: return decode_task_end(frame.payload);
    case Kind::reserved: return Reserved{decode_task_id(frame.payload)};
    case Kind::refused: return decode_refusal(frame.payload);
    case Kind::holdings: return decode_holdings(frame.payload);
    case Kind::host_load: return decode_host_load(frame.payload);
    case Kind::listening: return decode_listening(frame.payload);
    case Kind::line: return std::nullopt;
    default:
      throw_error(ErrorCode::corruption, "a message of kind {} came from the custodian",
                  frame.type);
  }
}

}  // namespace

Link::Link(std::string name, Channel channel)
    : name_(std::move(name)), channel_(std::move(channel)) {}

std::unique_ptr<Link> Link::to_this_machine(const std::filesystem::path& family) {
  Fd lock;
  if (!family.empty()) lock = lock_family(family);
  LocalCustodian custodian = start_local_custodian(lock);
  std::unique_ptr<Link> link(new Link("this machine", Channel(std::move(custodian.socket))));
  link->channel_.expect(kGreeting);
  link->pid_ = custodian.guard;
  return link;
}

std::unique_ptr<Link> Link::through(const std::vector<std::string>& command, std::string name) {
  Pipe down = make_pipe(), up = make_pipe(), errors = make_pipe();
  SpawnOptions options;
  options.argv = command;
  options.environment = current_environment();
  options.standard_input = down.read.get();
  options.standard_output = up.write.get();
  options.standard_error = errors.write.get();
  // Ctrl-C must not reach it: the owner still needs it to end the tasks over there.
  options.own_process_group = true;
  const pid_t child = spawn(options);
  std::unique_ptr<Link> link(
      new Link(std::move(name), Channel(std::move(up.read), std::move(down.write))));
  link->channel_.expect(kGreeting);
  link->command_ = std::filesystem::path(command.front()).filename();
  link->pid_ = child;
  link->errors_ = std::move(errors.read);
  set_non_blocking(link->errors_.get());
  return link;
}

std::unique_ptr<Link> Link::to_socket(Fd socket, const Secret& secret, std::string name,
                                      const std::string& owner, std::chrono::milliseconds lease) {
  std::unique_ptr<Link> link(
      new Link(std::move(name),
               Channel(std::move(socket), SecureStream(SecureStream::Side::caller, secret))));
  link->is_standing_ = true;
  link->send(Kind::claim, encode(Claim{owner, lease}));
  return link;
}

Hello Link::wait_for_hello(Deadline deadline) {
  std::optional<Hello> hello;
  while (!closed()) {
    for (auto& event : receive()) {
      if (auto* found = std::get_if<Hello>(&event))
        hello = std::move(*found);
      else
        early_.push_back(std::move(event));
    }
    if (hello) return *hello;
    if (closed()) break;
    channel_.flush();
    pollfd polls[] = {{channel_.read_fd(), POLLIN, 0}, {channel_.write_fd(), POLLOUT, 0}};
    if (::poll(polls, 2, deadline.poll_timeout_ms()) == 0 && deadline.passed())
      throw_error(ErrorCode::timeout, "{} does not answer", name_);
  }
  throw_error(ErrorCode::unavailable, "{}: {}", name_, reason_of_end());
}

Link::~Link() {
  channel_.close();
  if (pid_ <= 0) return;
  int status = 0;
  const bool is_command = !command_.empty();
  if (is_command && !has_answered_) kill_command();  // nobody is there to end it
  if (!is_command || !has_answered_) {
    wait_for_child(pid_, status);  // a guard ends when nothing is left
  } else if (::waitpid(pid_, &status, WNOHANG) == 0) {
    // The other end needs its tasks' grace time; this process need not wait for it.
    errors_.reset();
  }
}

void Link::kill_command() noexcept {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
  if (is_standing_) channel_.close();
}

void Link::send(Kind kind, std::string_view payload, const std::vector<int>& descriptors) {
  channel_.send(frame(kind, payload), descriptors);
  channel_.flush();
}

void Link::set_environment(const std::vector<std::string>& environment) {
  send(Kind::environment, encode(environment));
}

void Link::start(const Task& task) {
  std::vector<int> descriptors;
  for (const auto& passed : task.descriptors) descriptors.push_back(passed.fd);
  if (reservation_ == 0 || task.reservation != 0) {
    send(Kind::start, encode(task), descriptors);
    return;
  }
  Task reserved = task;
  reserved.reservation = reservation_;
  send(Kind::start, encode(reserved), descriptors);
}

void Link::end(TaskId task) { send(Kind::end, encode(task)); }
void Link::kill(TaskId task) { send(Kind::kill, encode(task)); }
void Link::set_lease(std::chrono::milliseconds lease) { send(Kind::lease, encode(lease)); }
void Link::renew() { send(Kind::renew); }
void Link::set_family(std::string_view family) { send(Kind::family, family); }
void Link::finish() { send(Kind::finish); }
void Link::listen(const ListenOrder& order) { send(Kind::listen, encode(order)); }

void Link::reserve(ReservationId id, const Amounts& want) {
  send(Kind::reserve, encode(ReservationOrder{id, want}));
}
void Link::release(ReservationId id) { send(Kind::release, encode(id)); }
void Link::drain(bool is_draining) { send(Kind::drain, ByteWriter().u8(is_draining).bytes()); }
void Link::measure() { send(Kind::measure); }
void Link::shut_down() { send(Kind::shut_down); }

std::vector<Event> Link::receive() {
  if (!early_.empty()) return std::exchange(early_, {});
  std::vector<Event> events;
  for (const Frame& frame : channel_.receive())
    if (auto event = event_of(frame)) events.push_back(std::move(*event));
  has_answered_ = has_answered_ || !events.empty();
  return events;
}

void Link::read_errors() {
  std::array<char, 4096> chunk;
  const ssize_t got = ::read(errors_.get(), chunk.data(), chunk.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    errors_.reset();
    return;
  }
  error_text_.append(chunk.data(), static_cast<std::size_t>(got));
  if (error_text_.size() > kErrorTextLimit)
    error_text_.erase(0, error_text_.size() - kErrorTextLimit);
}

std::string Link::reason_of_end() {
  if (is_standing_) {
    if (!channel_.reason().empty() && !has_answered_)
      return "its custodian cannot be reached: " + channel_.reason();
    if (!channel_.reason().empty()) return channel_.reason();
    return has_answered_ ? "its custodian closed the connection"
                         : "its custodian closed the connection; it may have another key";
  }
  int status = 0;
  if (pid_ > 0) {
    const Deadline deadline = Deadline::after(kCommandEnd);
    while (errors_.valid() && !deadline.passed()) {
      pollfd poll{errors_.get(), POLLIN, 0};
      if (::poll(&poll, 1, deadline.poll_timeout_ms()) > 0) read_errors();
    }
    if (errors_.valid()) kill_command();
    wait_for_child(pid_, status);
    pid_ = -1;
  }
  if (const auto line = last_line(error_text_); !line.empty()) return std::string(line);
  return fmt::format("{} {}", command_.empty() ? "its custodian" : command_,
                     describe_wait_status(status));
}

}  // namespace kolo::exec
