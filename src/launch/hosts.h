// Which hosts a job runs on, and how many ranks each takes.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::launch {

/// Of one host: more is a mistake, and sums of it might overflow.
inline constexpr int kMostSlots = 1'000'000;

struct Host {
  std::string name;  ///< as given; IPv6 without brackets; may be USER@NAME
  int slots = 1;

  bool operator==(const Host&) const = default;
};

/// "a:4,b,[fe80::1]:2". Slots are optional (1). A host named twice has the sum of its slots.
/// Throws invalid_argument naming the part that is wrong.
std::vector<Host> parse_hosts(std::string_view text);

/// The same for several such texts.
std::vector<Host> parse_hosts(const std::vector<std::string>& texts);

/// One host per line as "name slots=N", "name:N" or "name"; '#' starts a comment, blank lines are
/// skipped. Throws invalid_argument naming file and line.
std::vector<Host> parse_hostfile(std::string_view text, const std::string& file_name);
/// Its lines, without comments and blanks around them, numbered from 1; blank ones are left out.
void each_host_line(std::string_view text,
                    const std::function<void(std::string_view line, int number)>& take);
/// One of them. `place` is where it stands, for the error.
Host parse_host_line(std::string_view line, const std::string& place);
std::vector<Host> read_hostfile(const std::filesystem::path& path);

/// A host and the ranks it runs: first_rank … first_rank + ranks - 1.
struct Placement {
  std::string host;
  int first_rank = 0;
  int ranks = 0;
  bool is_local = false;  ///< this machine

  bool operator==(const Placement&) const = default;
};

/// Fills hosts in the order given, slot by slot, until `ranks` are placed; hosts that get none are
/// left out. Throws invalid_argument if there are not enough slots. `is_local` is not looked at.
std::vector<Placement> place_ranks(const std::vector<Host>& hosts, int ranks);

/// How many groups fit at once, if each takes `slots` slots on each of `nodes` hosts.
int groups_at_once(const std::vector<Host>& hosts, int nodes, int slots);

/// Whether a name means this machine: localhost, its own name, or one of its addresses.
bool is_this_machine(const std::string& host);

}  // namespace kolo::launch
