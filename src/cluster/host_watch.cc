#include "cluster/host_watch.h"

#include <algorithm>

#include "base/errors.h"
#include "base/log.h"
#include "base/signals_blocked.h"
#include "cluster/status.h"

namespace kolo::cluster {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookEvery = 2s;
/// Links are kept this long after the last question.
constexpr auto kInterest = 15s;
constexpr auto kMeasureWithin = 300ms;

bool is_same(const Member& a, const Member& b) {
  return a.host == b.host && a.address.has_value() == b.address.has_value() &&
         (!a.address || a.address->str() == b.address->str());
}

/// Of a member that still belongs to the cluster, and answers.
bool is_in(const Cluster& cluster, const LinkedMember& linked) {
  return linked.answers() &&
         std::any_of(cluster.members.begin(), cluster.members.end(),
                     [&](const Member& member) { return is_same(member, linked.member); });
}

std::size_t position_of(const std::vector<LinkedMember>& members, const Member& member) {
  const auto found = std::find_if(members.begin(), members.end(), [&](const LinkedMember& one) {
    return is_same(one.member, member);
  });
  return static_cast<std::size_t>(found - members.begin());
}

}  // namespace

HostWatch::HostWatch(std::string owner, std::function<void()> changed)
    : owner_(std::move(owner)), changed_(std::move(changed)) {
  const SignalsBlocked signals_blocked;
  thread_ = std::thread([this] { run(); });
}

HostWatch::~HostWatch() {
  {
    const MutexLock lock(mutex_);
    over_ = true;
  }
  asked_.notify_all();
  thread_.join();
}

bool HostWatch::has_interest() const {
  return last_question_ && std::chrono::steady_clock::now() - *last_question_ < kInterest;
}

std::vector<Json> HostWatch::clusters() {
  MutexLock lock(mutex_);
  if (!has_interest()) wanted_ = looks_ + 1;  // what is known is old
  last_question_ = std::chrono::steady_clock::now();
  asked_.notify_all();
  known_.wait_for(lock, kAnswerTime + kMeasureWithin,
                  [this]() KOLO_REQUIRES(mutex_) { return looks_ >= wanted_; });
  return latest_;
}

void HostWatch::look_again() {
  const MutexLock lock(mutex_);
  wanted_ = looks_ + 1;
  asked_.notify_all();
}

void HostWatch::run() {
  std::vector<Watched> all;
  for (;;) {
    {
      MutexLock lock(mutex_);
      const auto is_wanted = [this]() KOLO_REQUIRES(mutex_) { return over_ || looks_ < wanted_; };
      if (has_interest()) asked_.wait_for(lock, kLookEvery, is_wanted);
      if (!has_interest()) {
        all.clear();
        asked_.wait(lock, is_wanted);
      }
      if (over_) return;
    }
    follow_clusters(all);
    measure(all);
    publish(all);
    if (changed_) changed_();
  }
}

/// Clusters come and go, hosts are added, and lost ones may be back.
void HostWatch::follow_clusters(std::vector<Watched>& all) const {
  std::vector<Watched> now;
  for (const auto& name : cluster_names()) {
    try {
      const auto cluster = find_cluster(name);
      if (!cluster) continue;
      const auto known = std::find_if(all.begin(), all.end(), [&](const Watched& one) {
        return one.cluster.name == name && one.cluster.key.bytes() == cluster->key.bytes();
      });
      std::vector<LinkedMember> members;
      if (known != all.end()) members = std::move(known->members);
      std::erase_if(members, [&](const LinkedMember& one) { return !is_in(*cluster, one); });
      Cluster others{.name = name, .key = cluster->key};
      for (const auto& member : cluster->members)
        if (position_of(members, member) == members.size()) others.members.push_back(member);
      // A host that was lost before is not waited for as long as one that may just be slow.
      const auto patience = known == all.end() ? std::chrono::milliseconds(kAnswerTime)
                                               : std::chrono::milliseconds(kMeasureWithin);
      for (auto& linked : link_all(others, owner_, Deadline::after(patience)))
        members.push_back(std::move(linked));
      Watched& watched = now.emplace_back(Watched{*cluster, {}});
      for (const auto& member : cluster->members)
        watched.members.push_back(std::move(members[position_of(members, member)]));
    } catch (const Error& error) {  // it is being made or removed
      log::debug("cluster {}: {}", name, error.what());
    }
  }
  all = std::move(now);
}

void HostWatch::measure(std::vector<Watched>& all) {
  for (auto& [cluster, members] : all)
    for (auto& linked : members) {
      if (!linked.answers()) continue;
      linked.load = {};
      linked.link->measure();
    }
  const Deadline deadline = Deadline::after(kMeasureWithin);
  for (auto& [cluster, members] : all)
    while (std::any_of(members.begin(), members.end(), [](const LinkedMember& linked) {
      return linked.answers() && linked.load.memory_bytes == 0;
    }))
      if (!wait_for_any(members, deadline) && deadline.passed()) break;
}

void HostWatch::publish(const std::vector<Watched>& all) {
  std::vector<Json> latest;
  for (const auto& [cluster, members] : all) latest.push_back(status_json(cluster.name, members));
  const MutexLock lock(mutex_);
  latest_ = std::move(latest);
  ++looks_;
  known_.notify_all();
}

}  // namespace kolo::cluster
