#include "tune/study/rank_sharing.h"

#include <algorithm>

#include "base/errors.h"
#include "base/plural.h"

namespace kolo::tune {

/// Trials that work. One that gives up ranks has had its turn until they have gone.
std::vector<StudyTrial*> RankSharing::sharers() const {
  std::vector<StudyTrial*> trials;
  for (auto* trial : state_.trials.live_list())
    if (trial->phase == TrialPhase::running && trial->grant && !trial->shrinks_to)
      trials.push_back(trial);
  return trials;
}

RankShares RankSharing::shares_of(const std::vector<StudyTrial*>& trials) const {
  RankShares shares;
  shares.range = state_.per_trial.ranks;
  if (const auto& objectives = state_.steering.objectives(); !objectives.empty())
    shares.direction = objectives.front().direction;
  shares.ranks = state_.pool.free_for(state_.per_rank);
  bool places_come = false;
  for (const auto* trial : state_.trials.live_list()) places_come |= trial->shrinks_to.has_value();
  // One after the other: the next trial is seen when this one has started.
  if (starts_.waits_for_place() && !places_come) shares.ranks -= shares.range.least;
  for (const auto* trial : trials) {
    TrialShare share;
    share.number = trial->record.number;
    share.ranks = trial->grant->ranks;
    share.iteration = trial->run_iteration;
    if (!trial->values.empty()) share.value = trial->values.front();
    shares.ranks += share.ranks;
    shares.trials.push_back(share);
  }
  return shares;
}

void RankSharing::settle() {
  const auto& allocate = state_.options.scheduler.allocation;
  if (!allocate || state_.per_trial.ranks.most == 0) return;
  const auto trials = sharers();
  if (trials.empty()) return;
  const RankShares shares = shares_of(trials);
  const auto wanted = allocate(shares);
  if (wanted.size() != trials.size())
    throw_error(ErrorCode::invalid_argument,
                "the allocation of ranks returned {} for {}; it returns one number for each trial",
                counted(wanted.size(), "number"), counted(trials.size(), "trial"));
  for (std::size_t i = 0; i < trials.size(); ++i)
    resize(*trials[i], std::clamp(wanted[i], shares.range.least, shares.range.most));
}

void RankSharing::resize(StudyTrial& trial, int wanted) {
  const int before = trial.grant->ranks;
  if (wanted < before) {
    trial.shrinks_to = wanted;
  } else {
    while (trial.grant->ranks < wanted && state_.pool.grow(*trial.grant, state_.per_rank)) {
    }
    wanted = trial.grant->ranks;
  }
  if (wanted == before) return;
  state_.actions.resize(trial.run_id(), wanted);
  state_.journal.event("ranks", trial.record.number, fmt::format("from {} to {}", before, wanted));
}

void RankSharing::shrunk(StudyTrial& trial) {
  if (!trial.shrinks_to || !trial.grant) return;
  state_.pool.shrink(*trial.grant, state_.per_rank, *trial.shrinks_to);
  trial.shrinks_to.reset();
}

}  // namespace kolo::tune
