// The part that all schedulers share: it checks the calls, numbers the trials (slots, in the order
// in which they were added), turns every objective into one to be minimised and values that are not
// finite into NaN, and leaves the decision to on_result(). Decisions about other trials are
// collected by announce() and taken by take_decisions().
#include "kolo/search/scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/errors.h"

namespace kolo::search {
namespace {

std::uint64_t number(TrialId id) { return static_cast<std::uint64_t>(id); }

}  // namespace

std::string_view to_string(Action action) noexcept {
  switch (action) {
    case Action::proceed: return "proceed";
    case Action::stop: return "stop";
    case Action::pause: return "pause";
    case Action::clone: return "clone";
  }
  return "?";
}

std::string Reason::to_string() const {
  std::string text(rule);
  if (bracket) text += fmt::format(" of bracket {}", *bracket);
  if (rung) text += fmt::format(", rung {}", *rung);
  if (milestone) text += fmt::format(" at {:.5g}", *milestone);
  if (value) text += fmt::format(": value {:.5g}", *value);
  if (cutoff) text += fmt::format(", cut-off {:.5g}", *cutoff);
  if (rank) text += fmt::format(", rank {}", *rank);
  if (rank && among) text += fmt::format(" of {}", *among);
  return text;
}

Scheduler::Scheduler(std::string name, SchedulerOptions options)
    : name_(std::move(name)), options_(std::move(options)) {
  if (options_.directions.empty())
    throw_error(ErrorCode::invalid_argument,
                "scheduler '{}': there is no objective; set at least one direction", name_);
}

Scheduler::Slot Scheduler::slot_of(TrialId id, const char* what) const {
  const auto slot = slots_.find(id);
  if (!slot)
    throw_error(ErrorCode::not_found, "scheduler '{}', {}: trial {} was never added", name_, what,
                number(id));
  return *slot;
}

void Scheduler::add(TrialId id, Value config) {
  auto slot = static_cast<Slot>(entries_.size());
  if (!slots_.add(id, slot))
    throw_error(ErrorCode::already_exists, "scheduler '{}', add: trial {} was added before", name_,
                number(id));
  entries_.push_back({id, false, false});
  set_config(slot, std::move(config));
  try {
    on_add(slot);
  } catch (...) {
    entries_.pop_back();
    configs_.erase(slot);
    slots_.remove(id);
    throw;
  }
}

Scheduler::Slot Scheduler::take(TrialId id, const Result& result) {
  Slot slot = slot_of(id, "result");
  if (entries_[slot].ended)
    throw_error(ErrorCode::failed_precondition,
                "scheduler '{}', result: trial {} has ended; it cannot report any more", name_,
                number(id));
  if (!std::isfinite(result.time))
    throw_error(ErrorCode::invalid_argument,
                "scheduler '{}', result of trial {}: its time {} is not a finite number", name_,
                number(id), result.time);
  if (result.values.size() != objectives())
    throw_error(ErrorCode::invalid_argument,
                "scheduler '{}', result of trial {}: it has {} values for {} objectives", name_,
                number(id), result.values.size(), objectives());
  ++results_;
  scores_.resize(objectives());
  for (std::size_t i = 0; i < scores_.size(); ++i) {
    double value = result.values[i];
    if (!std::isfinite(value)) value = std::numeric_limits<double>::quiet_NaN();
    scores_[i] = options_.directions[i] == Direction::maximize ? -value : value;
  }
  return slot;
}

Decision Scheduler::result(TrialId id, const Result& result) {
  const Slot slot = take(id, result);
  if (entries_[slot].stopped) return {Action::stop, {.rule = "stopped before"}};
  Decision decision = on_result(slot, result, scores_);
  settle(slot, decision);
  return decision;
}

void Scheduler::last_result(TrialId id, const Result& result) {
  const Slot slot = take(id, result);
  if (!entries_[slot].stopped) on_last_result(slot, result, scores_);
}

void Scheduler::settle(Slot slot, Decision& decision) {
  if (decision.reason.value) decision.reason.value = as_reported(*decision.reason.value);
  if (decision.reason.cutoff) decision.reason.cutoff = as_reported(*decision.reason.cutoff);
  if (decision.action == Action::stop) entries_[slot].stopped = true;
  if (decision.action == Action::clone && decision.config) set_config(slot, *decision.config);
}

void Scheduler::announce(Slot slot, Decision decision) {
  settle(slot, decision);
  announced_.emplace_back(entries_[slot].id, std::move(decision));
}

std::vector<std::pair<TrialId, Decision>> Scheduler::take_decisions() {
  return std::exchange(announced_, {});
}

void Scheduler::end(TrialId id, bool failed, const char* what) {
  Slot slot = slot_of(id, what);
  if (entries_[slot].ended)
    throw_error(ErrorCode::failed_precondition, "scheduler '{}', {}: trial {} has ended before",
                name_, what, number(id));
  entries_[slot].ended = true;
  on_end(slot, failed);
  if (!remembers_configs()) configs_.erase(slot);
}

void Scheduler::complete(TrialId id) { end(id, false, "complete"); }
void Scheduler::fail(TrialId id) { end(id, true, "fail"); }
void Scheduler::stalled() { on_stalled(); }

std::optional<TrialId> Scheduler::next(std::span<const TrialId> waiting) const {
  std::vector<Slot> slots;
  slots.reserve(waiting.size());
  for (TrialId id : waiting) {
    Slot slot = slot_of(id, "next");
    if (!entries_[slot].ended && !entries_[slot].stopped) slots.push_back(slot);
  }
  if (slots.empty()) return std::nullopt;
  auto chosen = choose(slots);
  return chosen ? std::optional(entries_[*chosen].id) : std::nullopt;
}

std::optional<Scheduler::Slot> Scheduler::choose(std::span<const Slot> waiting) const {
  return waiting.front();
}

const Value& Scheduler::config_of(Slot slot) const {
  const auto found = configs_.find(slot);
  if (found == configs_.end())
    throw_error(ErrorCode::not_found, "scheduler '{}', config: trial {} has ended", name_,
                number(entries_[slot].id));
  return found->second;
}

const Value& Scheduler::config(TrialId id) const { return config_of(slot_of(id, "config")); }

}  // namespace kolo::search
