#include "dashboard/machine_pages.h"

#include <set>

#include "base/errors.h"
#include "cluster/status.h"
#include "launch/run_board.h"

namespace kolo::dashboard {
namespace {

Json with_waiting(Json run) {
  const auto [waiting, awaited] = launch::who_waits(run);
  run["waiting"] = waiting;
  run["awaited"] = awaited;
  return run;
}

/// A run in one line of a table. Ranks do the same steps, so the first of them speaks for all.
Json summary_of(const Json& whole) {
  Json run = with_waiting(whole);
  const Json ranks = std::move(run["ranks"]);
  run.erase("ranks");
  run.erase("events");
  std::set<std::string> hosts;
  std::size_t running = 0;
  for (const auto& rank : ranks) {
    hosts.insert(rank.value("host", ""));
    running += rank.value("state", "") == "running" ? 1U : 0U;
  }
  run["size"] = ranks.size();
  run["running"] = running;
  run["hosts"] = hosts;
  for (const char* name : {"steps", "operations", "steps_per_s", "operations_per_s"})
    run[name] = ranks.empty() ? Json(0) : ranks.front().value(name, Json(0));
  return run;
}

}  // namespace

MachinePages::MachinePages(std::function<void()> changed)
    : hosts_(cluster::owner_name("kolo dashboard"), std::move(changed)) {}

Json MachinePages::runs() {
  Json all = Json::array();
  for (const auto& run : launch::runs_under_way()) all.push_back(summary_of(run));
  return {{"runs", std::move(all)}};
}

Json MachinePages::run(const std::string& id) {
  for (auto& run : launch::runs_under_way())
    if (run.value("id", "") == id) return with_waiting(std::move(run));
  throw_error(ErrorCode::not_found, "there is no run {}; it has ended", id);
}

Json MachinePages::clusters() { return {{"clusters", hosts_.clusters()}}; }

std::size_t MachinePages::drain(const std::string& cluster, const std::string& host,
                                bool is_draining) {
  const auto holdings = cluster::drain_host(cluster::load_cluster(cluster), host, is_draining,
                                            cluster::owner_name("kolo dashboard"));
  hosts_.look_again();
  return holdings.held.size();
}

}  // namespace kolo::dashboard
