#include "launch/elastic/discovery.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/errors.h"
#include "base/subprocess.h"

namespace kolo::launch::elastic {
namespace {

/// More than this is not a list of hosts.
constexpr std::size_t kOutputLimit = 1U << 20;

}  // namespace

std::vector<Host> parse_discovered(std::string_view text, int slots,
                                   const std::function<void(const std::string&)>& warn) {
  std::vector<Host> hosts;
  each_host_line(text, [&](std::string_view line, int number) {
    Host host = parse_host_line(line, fmt::format("line {}", number));
    if (line == host.name || line == "[" + host.name + "]") host.slots = slots;
    const auto known = std::find_if(hosts.begin(), hosts.end(),
                                    [&](const Host& other) { return other.name == host.name; });
    if (known == hosts.end())
      hosts.push_back(std::move(host));
    else
      warn(fmt::format("host {} is named twice; its first line counts", host.name));
  });
  return hosts;
}

Discovery::Discovery(DiscoveryOptions options, std::function<void(const std::string&)> warn)
    : options_(std::move(options)), warn_(std::move(warn)) {}

Discovery::~Discovery() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::optional<std::vector<Host>> Discovery::work() {
  if (pid_ < 0) {
    if (next_.passed()) start();
    return std::nullopt;
  }
  char chunk[4096];
  while (output_.valid()) {
    const ssize_t got = ::read(output_.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      output_.reset();
      break;
    }
    text_.append(chunk, static_cast<std::size_t>(got));
    if (text_.size() > kOutputLimit) return end("it prints without end");
  }
  if (!output_.valid()) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      ::kill(-pid_, SIGKILL);  // what it may have left behind
      pid_ = -1;
      return end(exit_code_of(status) == 0 ? "" : "it " + describe_wait_status(status));
    }
  }
  if (next_.passed())
    return end(fmt::format("it did not end within {:g} s",
                           std::chrono::duration<double>(options_.limit).count()));
  return std::nullopt;
}

Deadline Discovery::next() const {
  // It has closed its output and is about to end, which no descriptor tells.
  constexpr auto kLook = std::chrono::milliseconds(20);
  return pid_ > 0 && !output_.valid() ? Deadline::after(kLook) : next_;
}

void Discovery::start() {
  text_.clear();
  try {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw_errno("cannot create a pipe");
    output_ = Fd(ends[0]);
    const Fd write_end(ends[1]);
    ::fcntl(ends[1], F_SETFL, 0);  // the script is not to care
    SpawnOptions spawned;
    spawned.argv = {"/bin/sh", "-c", options_.script};
    spawned.environment = current_environment();
    spawned.standard_output = write_end.get();
    spawned.own_process_group = true;
    spawned.die_with_parent = true;
    pid_ = spawn(spawned);
    next_ = Deadline::after(options_.limit);
  } catch (const Error& error) {
    output_.reset();
    next_ = Deadline::after(options_.interval);
    fail(error.message());
  }
}

std::optional<std::vector<Host>> Discovery::end(const std::string& wrong) {
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  output_.reset();
  next_ = Deadline::after(options_.interval);
  if (!wrong.empty()) {
    fail(wrong);
    return std::nullopt;
  }
  try {
    std::string twice;
    auto hosts = parse_discovered(text_, options_.slots_per_host,
                                  [&](const std::string& warning) { twice = warning; });
    has_succeeded_ = true;
    if (!twice.empty() && twice != last_warning_) warn_(twice);
    last_warning_ = twice;
    return hosts;
  } catch (const Error& error) {
    fail(error.message());
    return std::nullopt;
  }
}

void Discovery::fail(const std::string& text) {
  const std::string warning = fmt::format("host discovery script '{}': {}", options_.script, text);
  if (!has_succeeded_) {
    if (first_failure_.empty()) first_failure_ = warning;
  } else if (warning != last_warning_) {
    warn_(warning + "; the last list of hosts stays");
  }
  last_warning_ = warning;
}

}  // namespace kolo::launch::elastic
