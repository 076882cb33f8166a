// Host lists and hostfiles share parse_host(), which reads one host, so both accept the same names
// and report the same errors. A name that begins with '-' is refused, because ssh would read it as
// an option. Hosts that are named twice are found by a linear search, since lists are short and
// their order decides the ranks. groups_at_once() tries one group more until the places no longer
// suffice. is_this_machine() compares names before it resolves them, because a look-up may take
// seconds.
#include "launch/hosts.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/errors.h"
#include "base/files.h"
#include "base/host.h"
#include "base/socket.h"

namespace kolo::launch {
namespace {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\f\v";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::optional<int> parse_slots(std::string_view text) {
  int slots = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error != std::errc() || end != text.data() + text.size() || slots < 1 || slots > kMostSlots)
    return std::nullopt;
  return slots;
}

/// Names that ssh and getaddrinfo take; above all none that ssh would read as an option.
bool is_host_name(std::string_view name) {
  if (name.empty() || name.front() == '-' || name.front() == '@' || name.back() == '@')
    return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) {
                       return std::isalnum(c) || c == '.' || c == '-' || c == '_' || c == ':' ||
                              c == '%' || c == '@';
                     }) &&
         name.find("@-") == std::string_view::npos;
}

/// "name", "name:4", "[v6]", "[v6]:4". The reason why not, in `wrong`.
std::optional<Host> parse_host(std::string_view text, std::string& wrong) {
  Host host;
  std::string_view slots;
  const auto open = text.find('['), close = text.find(']');
  if (open != std::string_view::npos) {
    if (close == std::string_view::npos || close < open) {
      wrong = "the bracket is not closed";
      return std::nullopt;
    }
    host.name = std::string(text.substr(0, open)).append(text.substr(open + 1, close - open - 1));
    std::string_view rest = text.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') {
      wrong = "a ':' must follow the bracket";
      return std::nullopt;
    }
    if (rest == ":") {
      wrong = "the number of slots is missing";
      return std::nullopt;
    }
    if (!rest.empty()) slots = rest.substr(1);
  } else {
    const auto colon = text.find(':');
    host.name = text.substr(0, colon);
    if (colon != std::string_view::npos) {
      slots = text.substr(colon + 1);
      if (slots.find(':') != std::string_view::npos) {
        wrong = "an IPv6 address needs brackets, as in [fe80::1]:2";
        return std::nullopt;
      }
      if (slots.empty()) {
        wrong = "the number of slots is missing";
        return std::nullopt;
      }
    }
  }
  if (!is_host_name(host.name)) {
    wrong = fmt::format("'{}' is not a host name", host.name);
    return std::nullopt;
  }
  if (!slots.empty()) {
    auto number = parse_slots(slots);
    if (!number) {
      wrong = fmt::format("'{}' is not a number of slots", slots);
      return std::nullopt;
    }
    host.slots = *number;
  }
  return host;
}

/// Names of the machine itself that need no look-up.
bool is_loopback(std::string_view name) {
  return name == "localhost" || name == "::1" || name.starts_with("127.");
}

void add(std::vector<Host>& hosts, Host host) {
  for (Host& known : hosts) {
    const bool is_same =
        known.name == host.name || (is_loopback(known.name) && is_loopback(host.name));
    if (!is_same) continue;
    known.slots += host.slots;
    if (known.slots > kMostSlots)
      throw_error(ErrorCode::invalid_argument, "host '{}' has {} slots; a host can have {} at most",
                  known.name, known.slots, kMostSlots);
    return;
  }
  hosts.push_back(std::move(host));
}

/// Sums of slots fit into an int from here on.
std::vector<Host> with_countable_slots(std::vector<Host> hosts) {
  std::int64_t total = 0;
  for (const Host& host : hosts) total += host.slots;
  if (total > std::numeric_limits<int>::max())
    throw_error(ErrorCode::invalid_argument, "the {} hosts have {} slots together; {} at most",
                hosts.size(), total, std::numeric_limits<int>::max());
  return hosts;
}

}  // namespace

std::vector<Host> parse_hosts(std::string_view text) {
  std::vector<Host> hosts;
  while (true) {
    const auto comma = text.find(',');
    const std::string_view part = trim(text.substr(0, comma));
    std::string wrong;
    auto host = parse_host(part, wrong);
    if (!host) throw_error(ErrorCode::invalid_argument, "host list: '{}': {}", part, wrong);
    add(hosts, std::move(*host));
    if (comma == std::string_view::npos) return with_countable_slots(std::move(hosts));
    text.remove_prefix(comma + 1);
  }
}

std::vector<Host> parse_hosts(const std::vector<std::string>& texts) {
  std::vector<Host> hosts;
  for (const auto& text : texts)
    for (auto& host : parse_hosts(std::string_view(text))) add(hosts, std::move(host));
  return with_countable_slots(std::move(hosts));
}

Host parse_host_line(std::string_view line, const std::string& place) {
  auto refuse = [&](std::string_view reason) {
    throw_error(ErrorCode::invalid_argument,
                "{}: '{}': {}; a line is HOST, HOST:SLOTS or HOST slots=SLOTS", place, line,
                reason);
  };
  const auto blank = line.find_first_of(" \t");
  std::string wrong;
  auto host = parse_host(line.substr(0, blank), wrong);
  if (!host) refuse(wrong);
  if (blank != std::string_view::npos) {
    constexpr std::string_view kKey = "slots=";
    const std::string_view rest = trim(line.substr(blank));
    if (!rest.starts_with(kKey)) refuse(fmt::format("'{}' is not understood", rest));
    auto slots = parse_slots(rest.substr(kKey.size()));
    if (!slots) refuse(fmt::format("'{}' is not a number of slots", rest.substr(kKey.size())));
    host->slots = *slots;
  }
  return *host;
}

void each_host_line(std::string_view text,
                    const std::function<void(std::string_view line, int number)>& take) {
  for (int number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line = trim(line.substr(0, line.find('#')));
    if (!line.empty()) take(line, number);
  }
}

std::vector<Host> parse_hostfile(std::string_view text, const std::string& file_name) {
  std::vector<Host> hosts;
  each_host_line(text, [&](std::string_view line, int number) {
    add(hosts, parse_host_line(line, fmt::format("{}:{}", file_name, number)));
  });
  if (hosts.empty())
    throw_error(ErrorCode::invalid_argument, "{}: there is no host in this file", file_name);
  return with_countable_slots(std::move(hosts));
}

std::vector<Host> read_hostfile(const std::filesystem::path& path) {
  return parse_hostfile(read_file(path), path.string());
}

std::vector<Placement> place_ranks(const std::vector<Host>& hosts, int ranks) {
  std::vector<Placement> placements;
  int placed = 0;
  for (const Host& host : hosts) {
    const int here = std::min(host.slots, ranks - placed);
    if (here == 0) break;
    placements.push_back({host.name, placed, here, false});
    placed += here;
  }
  if (placed < ranks)
    throw_error(ErrorCode::invalid_argument,
                "{} ranks were asked for, but the hosts have {} slots; ask for fewer with -np, or "
                "give more slots as HOST:SLOTS",
                ranks, placed);
  return placements;
}

/// With k groups a host holds at most one part of each, so it has min(parts that fit, k) places.
int groups_at_once(const std::vector<Host>& hosts, int nodes, int slots) {
  for (int groups = 0;; ++groups) {
    std::int64_t places = 0;
    for (const Host& host : hosts) places += std::min(host.slots / slots, groups + 1);
    if (places < std::int64_t{nodes} * (groups + 1)) return groups;
  }
}

bool is_this_machine(const std::string& host) {
  if (host == "localhost") return true;
  if (host.find('@') != std::string::npos) return false;  // another user, perhaps
  if (host == host_name()) return true;
  const auto addresses = resolve_host(host);
  return std::any_of(addresses.begin(), addresses.end(), is_own_address);
}

}  // namespace kolo::launch
