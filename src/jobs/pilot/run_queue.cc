#include "jobs/pilot/run_queue.h"

#include <algorithm>
#include <tuple>

namespace kolo::jobs {
namespace {

/// So many smaller jobs may pass one that waits before it goes to the front.
constexpr int kPatience = 16;

bool is_larger(const Need& left, const Need& right) {
  return left.nodes > right.nodes || left.share > right.share || left.cores > right.cores ||
         left.gpus > right.gpus;
}

}  // namespace

bool RunQueue::Waiting::operator<(const Waiting& other) const {
  // Urgent ones in the order in which they came; then longest, largest, oldest.
  const bool urgent = passed >= kPatience, other_urgent = other.passed >= kPatience;
  if (urgent != other_urgent) return urgent;
  if (urgent) return id < other.id;
  return std::tuple(-seconds, -need.nodes, id) <
         std::tuple(-other.seconds, -other.need.nodes, other.id);
}

void RunQueue::add(JobId id, const Need& need, double expected_seconds) {
  by_id_[id] = waiting_.insert({id, need, expected_seconds, 0}).first;
  several_ += need.nodes > 1 ? 1 : 0;
}

void RunQueue::remove(JobId id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  several_ -= found->second->need.nodes > 1 ? 1 : 0;
  waiting_.erase(found->second);
  by_id_.erase(found);
}

std::vector<JobId> RunQueue::last(std::size_t most) const {
  std::vector<JobId> ids;
  for (auto job = waiting_.rbegin(); job != waiting_.rend() && ids.size() < most; ++job)
    ids.push_back(job->id);
  return ids;
}

RunQueue::Reservation RunQueue::reserve(const Need& need, double now) const {
  // What runs ends in the order in which it is expected to; what is late may end any moment.
  std::vector<const Running*> order;
  for (const auto& [id, running] : running_) order.push_back(&running);
  std::stable_sort(order.begin(), order.end(), [now](const Running* left, const Running* right) {
    return std::max(now, left->expected_end) < std::max(now, right->expected_end);
  });
  Nodes future = nodes_;
  Reservation reservation{now, std::vector<bool>(nodes_.all().size(), false)};
  auto found = future.find(need);
  for (auto job = order.begin(); found.empty() && job != order.end(); ++job) {
    future.give_back((*job)->need, (*job)->places);
    reservation.shadow = std::max(now, (*job)->expected_end);
    found = future.find(need);
  }
  for (const int node : found) reservation.nodes[static_cast<std::size_t>(node)] = true;
  return reservation;
}

void RunQueue::note_passed(JobId started, const Need& need) {
  for (auto& [id, place] : by_id_) {
    if (id >= started) break;
    if (place->passed >= kPatience || !is_larger(place->need, need)) continue;
    // The order depends on the count: an element is taken out to change it.
    auto node = waiting_.extract(place);
    ++node.value().passed;
    place = waiting_.insert(std::move(node)).position;
  }
}

std::vector<RunQueue::Start> RunQueue::start(double now) {
  std::vector<Start> starts;
  std::vector<Need> too_large;
  std::optional<Reservation> reservation;
  for (auto job = waiting_.begin(); job != waiting_.end() && nodes_.has_room();) {
    if (std::find(too_large.begin(), too_large.end(), job->need) != too_large.end()) {
      ++job;
      continue;
    }
    const bool ends_before = !reservation || now + job->seconds <= reservation->shadow;
    const auto found =
        nodes_.find(job->need, ends_before ? std::vector<bool>() : reservation->nodes);
    if (found.empty()) {
      if (!reservation && nodes_.obstacle(job->need).empty()) reservation = reserve(job->need, now);
      // A shorter one of the same need may still fit before the shadow.
      if (ends_before) too_large.push_back(job->need);
      ++job;
      continue;
    }
    starts.push_back({job->id, nodes_.take(job->need, found)});
    running_[job->id] = {job->need, starts.back().places, now + job->seconds};
    by_id_.erase(job->id);
    several_ -= job->need.nodes > 1 ? 1 : 0;
    job = waiting_.erase(job);
  }
  // Counting moves elements, so not while walking over them.
  for (const auto& start : starts) note_passed(start.id, running_.at(start.id).need);
  return starts;
}

void RunQueue::shrink(JobId id, const Need& need) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  auto& [now, places, expected_end] = found->second;
  nodes_.give_back(now, places);
  std::vector<int> nodes;
  for (const auto& place : places) nodes.push_back(place.node);
  now = need;
  places = nodes_.take(need, nodes);
}

void RunQueue::ended(JobId id) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  nodes_.give_back(found->second.need, found->second.places);
  running_.erase(found);
}

}  // namespace kolo::jobs
