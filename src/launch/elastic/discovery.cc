// A call writes its errors to a file in memory: of a pipe, the end would come only when the last
// process that the script has left in the background is gone, too.
#include "launch/elastic/discovery.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/errors.h"

namespace kolo::launch::elastic {
namespace {

/// More than this is not a list of hosts.
constexpr std::size_t kOutputLimit = 1U << 20;
/// Of what a call writes to standard error, the first part is passed on.
constexpr std::size_t kErrorLimit = 1U << 16;

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

std::optional<std::vector<Host>> Discovery::work() {
  if (!call_) {
    if (next_.passed()) start();
    return std::nullopt;
  }
  const bool has_ended = call_->work();
  const CommandResult& result = call_->result();
  if (result.output.size() > kOutputLimit) return end("it prints without end");
  if (has_ended) return end(result.ok() ? "" : "it " + describe_wait_status(result.status));
  if (next_.passed())
    return end(fmt::format("it did not end within {:g} s",
                           std::chrono::duration<double>(options_.limit).count()));
  return std::nullopt;
}

Deadline Discovery::next() const {
  // Nothing tells when it ends.
  constexpr auto kLook = std::chrono::milliseconds(20);
  return call_ && call_->fd() < 0 ? Deadline::after(kLook) : next_;
}

void Discovery::start() {
  try {
    CommandOptions call;
    call.argv = {"/bin/sh", "-c", options_.script};
    call.environment = current_environment();
    call.own_process_group = true;
    call.die_with_parent = true;
    call.gathers_errors = false;
    errors_ = Fd(::memfd_create("kolo-discovery", MFD_CLOEXEC));
    if (errors_.valid()) call.standard_error = errors_.get();
    call_ = std::make_unique<RunningCommand>(std::move(call));
    next_ = Deadline::after(options_.limit);
  } catch (const Error& error) {
    next_ = Deadline::after(options_.interval);
    fail(error.message());
  }
}

std::optional<std::vector<Host>> Discovery::end(const std::string& wrong) {
  const std::string text = call_->result().output;
  call_.reset();
  pass_errors_on();
  next_ = Deadline::after(options_.interval);
  if (!wrong.empty()) {
    fail(wrong);
    return std::nullopt;
  }
  try {
    std::string twice;
    auto hosts = parse_discovered(text, options_.slots_per_host,
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

/// A script that fails does so once a second, perhaps for hours.
void Discovery::pass_errors_on() {
  std::string errors(kErrorLimit, '\0');
  const ssize_t got = errors_.valid() ? ::pread(errors_.get(), errors.data(), errors.size(), 0) : 0;
  errors.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  errors_.reset();
  if (errors != last_errors_) std::fwrite(errors.data(), 1, errors.size(), stderr);
  last_errors_ = std::move(errors);
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
