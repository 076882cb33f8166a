#include "jobs/worker_link.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <array>

#include "base/errors.h"
#include "base/socket.h"
#include "base/subprocess.h"

namespace kolo::jobs {
namespace {

constexpr std::size_t kNoiseLimit = 1U << 20;
constexpr std::size_t kErrorTextLimit = 4096;

struct Pipe {
  Fd read, write;
};
Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("cannot create a pipe");
  return {Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

WorkerLink::WorkerLink(std::string node, const std::vector<std::string>& command)
    : node_(std::move(node)) {
  Pipe down = make_pipe(), up = make_pipe(), errors = make_pipe();
  SpawnOptions options;
  options.argv = command;
  options.environment = current_environment();
  options.standard_input = down.read.get();
  options.standard_output = up.write.get();
  options.standard_error = errors.write.get();
  // Ctrl-C must not reach it: the launcher still needs it to end the tasks.
  options.own_process_group = true;
  Spawned child = spawn(options);
  child.wait_until_running();
  pid_ = child.pid();
  to_ = std::move(down.write);
  from_ = std::move(up.read);
  errors_ = std::move(errors.read);
  for (const int fd : {to_.get(), from_.get(), errors_.get()}) set_non_blocking(fd);
}

WorkerLink::~WorkerLink() {
  close();
  // It needs no more than its tasks' grace time; whoever ends this process does not wait for that.
  if (pid_ > 0) ::waitpid(pid_, nullptr, WNOHANG);
}

void WorkerLink::close() {
  to_.reset();
  from_.reset();
}

void WorkerLink::flush() {
  while (!outbox_.empty() && to_.valid()) {
    const ssize_t written = ::write(to_.get(), outbox_.data(), outbox_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      if (errno != EAGAIN) outbox_.clear();  // reading will show that it has gone
      return;
    }
    outbox_.erase(0, static_cast<std::size_t>(written));
  }
}

std::vector<Frame> WorkerLink::receive() {
  std::array<char, 65536> chunk;
  const ssize_t got = ::read(from_.get(), chunk.data(), chunk.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got <= 0) {
    read_errors();
    close();
    return {};
  }
  std::string_view bytes(chunk.data(), static_cast<std::size_t>(got));
  std::string rest;
  if (!greeted_) {
    noise_ += bytes;
    const auto greeting = noise_.find(kWorkerGreeting);
    if (greeting == std::string::npos) {
      if (noise_.size() > kNoiseLimit) close();
      return {};
    }
    greeted_ = true;
    rest = noise_.substr(greeting + kWorkerGreeting.size());
    bytes = rest;
  }
  parser_.feed(bytes);
  std::vector<Frame> frames;
  try {
    while (auto one = parser_.next()) frames.push_back(std::move(*one));
  } catch (const Error& error) {
    error_text_ = error.message();
    close();
  }
  return frames;
}

void WorkerLink::read_errors() {
  std::array<char, 4096> chunk;
  ssize_t got = 0;
  while ((got = ::read(errors_.get(), chunk.data(), chunk.size())) > 0) {
    error_text_.append(chunk.data(), static_cast<std::size_t>(got));
    if (error_text_.size() > kErrorTextLimit)
      error_text_.erase(0, error_text_.size() - kErrorTextLimit);
  }
  if (got == 0) errors_.reset();
}

std::string WorkerLink::reason_of_end() {
  std::string why = "its worker has gone";
  for (char& c : error_text_)
    if (c == '\n') c = ' ';
  while (error_text_.ends_with(' ')) error_text_.pop_back();
  int status = 0;
  if (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    pid_ = -1;
    why = "its worker " + describe_wait_status(status);
  }
  return error_text_.empty() ? why : why + ": " + error_text_;
}

}  // namespace kolo::jobs
