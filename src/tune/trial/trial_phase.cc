#include "tune/trial/trial_phase.h"

#include <algorithm>

namespace kolo::tune {
namespace {

using Phase = TrialPhase;

// A paused or pending trial may be terminated without a run, when the study ends or somebody stops
// it. Pending becomes paused when a resumed study finds that the last report led to a pause.
constexpr Phase kAfterPending[] = {Phase::running, Phase::paused, Phase::terminated};
constexpr Phase kAfterRunning[] = {Phase::held,    Phase::stopping,   Phase::ending,
                                   Phase::pending, Phase::terminated, Phase::failed};
constexpr Phase kAfterHeld[] = {Phase::running, Phase::ending, Phase::pending, Phase::terminated,
                                Phase::failed};
constexpr Phase kAfterStopping[] = {Phase::ending, Phase::pending, Phase::terminated,
                                    Phase::failed};
constexpr Phase kAfterEnding[] = {Phase::pending, Phase::paused, Phase::terminated, Phase::failed};
constexpr Phase kAfterPaused[] = {Phase::running, Phase::terminated};

constexpr PhaseRow kPhases[] = {
    {Phase::pending, "pending", TrialStatus::pending, kAfterPending},
    {Phase::running, "running", TrialStatus::running, kAfterRunning},
    {Phase::held, "held", TrialStatus::paused, kAfterHeld},
    {Phase::stopping, "stopping", TrialStatus::running, kAfterStopping},
    {Phase::ending, "ending", TrialStatus::running, kAfterEnding},
    {Phase::paused, "paused", TrialStatus::paused, kAfterPaused},
    {Phase::terminated, "terminated", TrialStatus::terminated, {}},
    {Phase::failed, "failed", TrialStatus::error, {}},
};

}  // namespace

std::span<const PhaseRow> phase_table() noexcept { return kPhases; }

const PhaseRow& row_of(TrialPhase phase) noexcept {
  return kPhases[static_cast<std::size_t>(phase)];
}

bool may_follow(TrialPhase from, TrialPhase to) noexcept {
  const auto next = row_of(from).next;
  return std::find(next.begin(), next.end(), to) != next.end();
}

Consequence consequence_of(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::proceed: return {};
    case Verdict::stop: return {Fate::pruned, Reply::stop};
    case Verdict::rule:
    case Verdict::full:
    case Verdict::done: return {Fate::done, Reply::stop};
    case Verdict::pause: return {Fate::paused, Reply::pause};
    case Verdict::clone: return {Fate::cloned, Reply::stop};
  }
  return {};
}

}  // namespace kolo::tune
