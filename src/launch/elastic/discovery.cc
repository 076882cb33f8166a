#include "launch/elastic/discovery.h"

#include <algorithm>

#include "base/errors.h"

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
