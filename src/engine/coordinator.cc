// waiting_ has one entry per name, with the request of each member that has submitted it. When the
// last one arrives, settle() compares the requests and appends an execution or a failure to ready_.
// take_decisions() goes through ready_ once and fuses: an allreduce joins the first open decision
// with the same operation and factors that has space left; everything else keeps its place.
#include "engine/coordinator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/deadline.h"

namespace kolo::runtime {

Coordinator::Coordinator(std::vector<int> ranks, Options options)
    : ranks_(std::move(ranks)), options_(options), joined_(ranks_.size()) {
  // They are added to a clock.
  for (auto* time : {&options_.stall_warning, &options_.stall_shutdown})
    *time = std::min<std::chrono::milliseconds>(*time, kLongestTime);
}

bool Coordinator::is_ready(const Entry& entry) const {
  for (std::size_t m = 0; m < ranks_.size(); ++m)
    if (!entry.by_member[m] && !joined_[m]) return false;
  return true;
}

std::vector<int> Coordinator::missing(const Entry& entry) const {
  std::vector<int> absent;
  for (std::size_t m = 0; m < ranks_.size(); ++m)
    if (!entry.by_member[m] && !joined_[m]) absent.push_back(ranks_[m]);
  return absent;
}

void Coordinator::submit(int member, Request request, Clock::time_point now) {
  const std::string name = request.name;
  auto [entry, is_new] = waiting_.try_emplace(name);
  if (is_new) {
    entry->second.by_member.resize(ranks_.size());
    entry->second.since = entry->second.reported = now;
  }
  entry->second.by_member[static_cast<std::size_t>(member)] = std::move(request);
  if (is_ready(entry->second)) settle(entry);
}

void Coordinator::join(int member) {
  if (joined_[static_cast<std::size_t>(member)]) return;
  joined_[static_cast<std::size_t>(member)] = true;
  ++joined_count_;
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    const auto next = std::next(entry);
    if (is_ready(entry->second)) settle(entry);
    entry = next;
  }
  if (joined_count_ < static_cast<int>(ranks_.size())) return;
  Decision decision;
  decision.kind = Decision::Kind::joined;
  decision.rank = ranks_[static_cast<std::size_t>(member)];
  ready_.push_back(std::move(decision));
  joined_.assign(ranks_.size(), false);
  joined_count_ = 0;
}

void Coordinator::settle(std::map<std::string, Entry>::iterator entry) {
  const auto& by_member = entry->second.by_member;
  Decision decision;
  auto disagreement = describe_disagreement(by_member, ranks_);
  const auto first = std::find_if(by_member.begin(), by_member.end(),
                                  [](const auto& request) { return request.has_value(); });
  decision.requests.push_back(**first);
  const OpKind kind = decision.requests[0].kind;
  const bool can_do_without =
      kind == OpKind::allreduce || kind == OpKind::grouped_allreduce || kind == OpKind::barrier;
  if (!disagreement && joined_count_ > 0 && !can_do_without) {
    std::vector<int> absent;
    for (std::size_t m = 0; m < ranks_.size(); ++m)
      if (!by_member[m]) absent.push_back(ranks_[m]);
    if (!absent.empty())
      disagreement = fmt::format("{} '{}' needs every rank, but rank {} has joined",
                                 comm::to_string(kind), entry->first, fmt::join(absent, ", "));
  }
  if (disagreement) {
    decision.kind = Decision::Kind::fail;
    decision.code = ErrorCode::invalid_argument;
    decision.text = std::move(*disagreement);
  }
  waiting_.erase(entry);
  ready_.push_back(std::move(decision));
}

std::vector<Decision> Coordinator::take_decisions() {
  std::vector<Decision> decisions;
  struct Open {
    std::size_t decision, bytes;
    std::size_t encoded;  // in the message that tells it to the members
  };
  std::vector<Open> open;  // executions that may still take more
  for (auto& next : ready_) {
    const Request* request = next.requests.empty() ? nullptr : &next.requests[0];
    const bool can_fuse =
        next.kind == Decision::Kind::execute && request->op != ReduceOp::adasum &&
        (request->kind == OpKind::allreduce || request->kind == OpKind::grouped_allreduce);
    const std::size_t bytes = can_fuse ? request->bytes() : 0;
    if (!can_fuse || bytes > options_.fusion_bytes / 8) {
      decisions.push_back(std::move(next));
      continue;
    }
    const std::size_t encoded = encoded_bytes(*request);
    const auto fits = std::find_if(open.begin(), open.end(), [&](const Open& candidate) {
      const Request& other = decisions[candidate.decision].requests[0];
      return candidate.bytes + bytes <= options_.fusion_bytes &&
             candidate.encoded + encoded <= kRequestLimit && other.op == request->op &&
             other.scaling.prescale == request->scaling.prescale &&
             other.scaling.postscale == request->scaling.postscale;
    });
    if (fits == open.end()) {
      open.push_back({decisions.size(), bytes, encoded});
      decisions.push_back(std::move(next));
    } else {
      fits->bytes += bytes;
      fits->encoded += encoded;
      decisions[fits->decision].requests.push_back(std::move(next.requests[0]));
    }
  }
  ready_.clear();
  return decisions;
}

// --- stalls --------------------------------------------------------------------------------------

std::optional<Coordinator::Clock::time_point> Coordinator::next_check() const {
  std::optional<Clock::time_point> soonest;
  const auto consider = [&](Clock::time_point when) {
    if (!soonest || when < *soonest) soonest = when;
  };
  for (const auto& [name, entry] : waiting_) {
    if (options_.stall_warning.count() > 0) consider(entry.reported + options_.stall_warning);
    if (options_.stall_shutdown.count() > 0) consider(entry.since + options_.stall_shutdown);
  }
  return soonest;
}

// The text of a warning if one is due. Entries past the second limit become failures.
std::optional<std::string> Coordinator::check_stalls(Clock::time_point now) {
  constexpr std::size_t kNamesShown = 6;
  std::map<std::vector<int>, std::vector<std::string>> by_absent;
  bool is_due = false;
  double longest = 0;
  for (auto& [name, entry] : waiting_) {
    if (options_.stall_warning.count() == 0 || now - entry.since < options_.stall_warning) continue;
    if (now - entry.reported >= options_.stall_warning) {
      is_due = true;
      entry.reported = now;
    }
    longest = std::max(longest, std::chrono::duration<double>(now - entry.since).count());
    by_absent[missing(entry)].push_back(name);
  }
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    const auto next = std::next(entry);
    if (options_.stall_shutdown.count() > 0 &&
        now - entry->second.since >= options_.stall_shutdown) {
      Decision decision;
      decision.kind = Decision::Kind::fail;
      decision.code = ErrorCode::timeout;
      const std::vector<int> late = missing(entry->second);
      if (!late.empty()) decision.rank = late.front();
      decision.text = fmt::format(
          "{} '{}' was not submitted by rank {} within {:g} s (KOLO_STALL_SHUTDOWN_TIME_SECONDS)",
          comm::to_string(
              (*std::find_if(entry->second.by_member.begin(), entry->second.by_member.end(),
                             [](const auto& r) { return r.has_value(); }))
                  ->kind),
          entry->first, fmt::join(late, ", "),
          std::chrono::duration<double>(options_.stall_shutdown).count());
      Request request;
      request.name = entry->first;
      decision.requests.push_back(std::move(request));
      for (std::size_t member = 0; member < entry->second.by_member.size(); ++member)
        if (!entry->second.by_member[member]) decision.absent.push_back(static_cast<int>(member));
      ready_.push_back(std::move(decision));
      waiting_.erase(entry);
    }
    entry = next;
  }
  if (!is_due) return std::nullopt;
  std::string text = fmt::format("some ranks have waited for others for up to {:.0f} s:", longest);
  for (const auto& [absent, names] : by_absent) {
    const std::size_t shown = std::min(names.size(), kNamesShown);
    text += fmt::format(" rank {} has not submitted {}", fmt::join(absent, ", "),
                        fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "));
    if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
    text += ";";
  }
  text.pop_back();
  return text;
}

}  // namespace kolo::runtime
