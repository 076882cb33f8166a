#include "launch/slurm.h"

#include <charconv>
#include <sstream>

#include "base/env.h"
#include "base/errors.h"
#include "base/subprocess.h"

namespace kolo::launch {
namespace {

constexpr std::size_t kMostNodes = 1'000'000;

}  // namespace

std::vector<int> parse_slurm_counts(std::string_view text) {
  std::vector<int> counts;
  const char* at = text.data();
  const char* const end = at + text.size();
  auto refuse = [&] {
    throw_error(ErrorCode::invalid_argument, "'{}' is not a list of counts as Slurm writes it",
                text);
  };
  auto number = [&] {
    int value = 0;
    auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 1 || value > 1'000'000) refuse();
    at = stop;
    return value;
  };
  do {
    const int count = number();
    int times = 1;
    if (end - at > 2 && at[0] == '(' && at[1] == 'x') {
      at += 2;
      times = number();
      if (at == end || *at != ')') refuse();
      ++at;
    }
    // A short text must not become a list that fills the memory.
    if (counts.size() + static_cast<std::size_t>(times) > kMostNodes) refuse();
    counts.insert(counts.end(), static_cast<std::size_t>(times), count);
    if (at != end && *at != ',') refuse();
  } while (at++ != end && at <= end);
  return counts;
}

std::optional<std::vector<Host>> slurm_hosts() {
  auto nodes = environment("SLURM_JOB_NODELIST");
  if (!nodes || !environment("SLURM_JOB_ID")) return std::nullopt;
  auto give_up = [](std::string_view why) {
    throw_error(ErrorCode::unavailable,
                "cannot tell the hosts of this Slurm allocation: {}; name them with -H", why);
  };
  CommandResult result;
  try {
    result = run_command({"scontrol", "show", "hostnames", *nodes},
                         Deadline::after(std::chrono::seconds(10)));
  } catch (const Error& error) {
    give_up(error.message());
  }
  if (!result.ok()) give_up("scontrol " + describe_wait_status(result.status));
  std::vector<Host> hosts;
  std::istringstream lines(result.output);
  for (std::string name; std::getline(lines, name);)
    if (!name.empty()) hosts.push_back({name, 1});

  auto counts = environment("SLURM_TASKS_PER_NODE");
  if (!counts) counts = environment("SLURM_JOB_CPUS_PER_NODE");
  if (counts) {
    const auto slots = parse_slurm_counts(*counts);
    if (slots.size() != hosts.size()) give_up("their number and that of their tasks differ");
    for (std::size_t i = 0; i < hosts.size(); ++i) hosts[i].slots = slots[i];
  }
  if (hosts.empty()) give_up("scontrol names none");
  return hosts;
}

}  // namespace kolo::launch
