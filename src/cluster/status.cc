#include "cluster/status.h"

#include "base/errors.h"

namespace kolo::cluster {
namespace {

Json amounts_json(const exec::Amounts& amounts) {
  Json json = amounts.named;
  if (json.is_null()) json = Json::object();
  json["slots"] = amounts.slots;
  json["gpus"] = amounts.gpus;
  return json;
}

Json host_json(const LinkedMember& linked) {
  Json host = {{"host", linked.member.host},
               {"head", linked.member.is_head},
               {"address", linked.member.address ? linked.member.address->str() : ""},
               {"state", state_of(linked)},
               {"error", linked.error},
               {"processors", linked.hello.processors},
               {"total", amounts_json(linked.holdings.total)},
               {"free", amounts_json(linked.holdings.free)},
               {"held", Json::array()}};
  for (const auto& held : linked.holdings.held)
    host["held"].push_back({{"owner", held.owner},
                            {"amounts", amounts_json(held.amounts)},
                            {"processors", held.processors}});
  if (linked.load.memory_bytes > 0) {
    host["load"] = linked.load.load;
    host["memory_bytes"] = linked.load.memory_bytes;
    host["available_bytes"] = linked.load.available_bytes;
  }
  return host;
}

}  // namespace

std::string state_of(const LinkedMember& linked) {
  if (!linked.answers()) return "lost";
  return linked.holdings.is_draining ? "drained" : "up";
}

Json status_json(const std::string& name, const std::vector<LinkedMember>& members) {
  Json hosts = Json::array();
  for (const auto& linked : members) hosts.push_back(host_json(linked));
  return {{"cluster", name}, {"hosts", std::move(hosts)}};
}

exec::Holdings drain_host(const Cluster& cluster, const std::string& host, bool is_draining,
                          const std::string& owner) {
  const Deadline deadline = Deadline::after(answer_time(cluster));
  std::vector<LinkedMember> one;
  one.push_back(link_one(cluster, cluster.at(host), owner, deadline));
  LinkedMember& linked = one.front();
  linked.link->drain(is_draining);
  while (linked.answers() && linked.holdings.is_draining != is_draining)
    if (!wait_for_any(one, deadline) && deadline.passed())
      throw_error(ErrorCode::timeout, "{} does not answer", host);
  if (!linked.answers()) throw_error(ErrorCode::unavailable, "{}: {}", host, linked.error);
  return linked.holdings;
}

}  // namespace kolo::cluster
