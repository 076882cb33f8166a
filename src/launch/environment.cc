#include "launch/environment.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/env.h"
#include "base/errors.h"
#include "kolo/topology.h"

namespace kolo::launch {

std::string resolve_variable(std::string_view text, const Environment& environment) {
  const std::string_view name = exec::name_of(text);
  const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_';
  });
  if (!is_name || std::isdigit(static_cast<unsigned char>(name.front())))
    throw_error(ErrorCode::invalid_argument, "-x {}: '{}' is not the name of a variable", text,
                name);
  if (text.size() > name.size()) return std::string(text);
  for (const auto& entry : environment)
    if (exec::name_of(entry) == name) return entry;
  throw_error(ErrorCode::invalid_argument, "-x {}: there is no such variable; give it as {}=VALUE",
              text, text);
}

Environment rank_variables(const std::vector<Placement>& placements, const Placement& placement,
                           int local_rank, const std::string& rendezvous) {
  std::vector<int> counts, host_of_rank;
  for (std::size_t host = 0; host < placements.size(); ++host) {
    counts.push_back(placements[host].ranks);
    host_of_rank.insert(host_of_rank.end(), static_cast<std::size_t>(placements[host].ranks),
                        static_cast<int>(host));
  }
  const Topology topology(placement.first_rank + local_rank, std::move(host_of_rank));
  return {fmt::format("KOLO_RANK={}", topology.rank()),
          fmt::format("KOLO_SIZE={}", topology.size()),
          fmt::format("KOLO_LOCAL_RANK={}", topology.local_rank()),
          fmt::format("KOLO_LOCAL_SIZE={}", topology.local_size()),
          fmt::format("KOLO_CROSS_RANK={}", topology.cross_rank()),
          fmt::format("KOLO_CROSS_SIZE={}", topology.cross_size()),
          fmt::format("KOLO_RANKS_PER_HOST={}", fmt::join(counts, ",")),
          fmt::format("KOLO_HOSTNAME={}", placement.host),
          fmt::format("KOLO_RENDEZVOUS={}", rendezvous)};
}

Environment virtual_rank_variables(int count) {
  const std::string threads = environment("OMP_NUM_THREADS").value_or("");
  return {fmt::format("KOLO_VIRTUAL_RANKS={}", count),
          "OMP_NUM_THREADS=" + (threads.empty() ? "1" : threads)};
}

}  // namespace kolo::launch
