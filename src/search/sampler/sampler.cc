// The part that all samplers share: it checks the calls, keeps the trials, turns every objective
// into one to be minimised, and hands the rest to propose(), on_ask(), on_tell() and on_report().
// Trials live in one vector in the order in which they began; `place` is an index into it.
//
// Starting points come first, each completed with draws from a stream of its own. A result that is
// not finite makes the trial a failed one.
#include "kolo/search/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "kolo/random.h"

namespace kolo::search {

std::string_view to_string(TrialState state) noexcept {
  switch (state) {
    case TrialState::running: return "running";
    case TrialState::complete: return "complete";
    case TrialState::failed: return "failed";
    case TrialState::pruned: return "pruned";
  }
  return "?";
}

std::string_view to_string(Direction direction) noexcept {
  return direction == Direction::minimize ? "minimize" : "maximize";
}

Sampler::Sampler(std::string name, std::shared_ptr<const Space> space, SamplerOptions options,
                 StartingPoints starting_points)
    : name_(std::move(name)),
      space_(std::move(space)),
      options_(std::move(options)),
      who_starts_(starting_points) {
  if (!space_) throw_error(ErrorCode::invalid_argument, "sampler {}: the space is missing", name_);
  if (options_.directions.empty())
    throw_error(ErrorCode::invalid_argument,
                "sampler {}: there is no objective; set at least one direction", name_);
  starting_points_ = options_.points_to_evaluate;
  starting_points_.insert(starting_points_.end(), space_->starting_points().begin(),
                          space_->starting_points().end());
  // Points that cannot be tried are found now.
  for (const Value& partial : starting_points_) {
    Random probe(0);
    (void)space_->point(partial, probe);
  }
}

Random Sampler::stream(std::uint64_t number) const {
  return Random(options_.seed).stream(name_, number);
}

std::vector<std::size_t> Sampler::running() const {
  std::vector<std::size_t> places;
  places.reserve(running_count_);
  for (const std::size_t place : maybe_running_)
    if (trials_[place].is_running()) places.push_back(place);
  return places;
}

std::optional<Point> Sampler::ask(TrialId id) { return std::move(ask(std::span(&id, 1))[0]); }

std::vector<std::optional<Point>> Sampler::ask(std::span<const TrialId> ids) {
  std::vector<std::uint64_t> sorted;
  for (const TrialId id : ids) {
    sorted.push_back(static_cast<std::uint64_t>(id));
    if (places_.find(id))
      throw_error(ErrorCode::already_exists, "ask: trial {} was started before", sorted.back());
  }
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    throw_error(ErrorCode::already_exists, "ask: trial {} appears twice in one batch", *twice);

  std::vector<std::optional<Point>> answers(ids.size());
  std::size_t given = 0;
  const std::size_t first = who_starts_ == StartingPoints::first ? starting_points_.size() : 0;
  for (; given < ids.size() && asked_ < first; ++given) {
    Random random = Random(options_.seed).stream("starting point", asked_);
    answers[given] = space_->point(starting_points_[asked_], random);
    begin(ids[given], *answers[given]);
  }
  while (given < ids.size()) {
    std::vector<Point> points = propose(ids.size() - given);
    KOLO_CHECK(points.size() <= ids.size() - given);
    if (points.empty()) break;
    for (Point& point : points) {
      begin(ids[given], point);
      answers[given++] = std::move(point);
    }
  }
  return answers;
}

void Sampler::recall(TrialId id, Point point) {
  const auto number = static_cast<std::uint64_t>(id);
  if (places_.find(id))
    throw_error(ErrorCode::already_exists, "recall: trial {} was started before", number);
  if (point.size() != space_->size())
    throw_error(ErrorCode::invalid_argument,
                "recall: the point of trial {} has {} entries, but the space has {} parameters",
                number, point.size(), space_->size());
  begin(id, std::move(point));
}

void Sampler::begin(TrialId id, Point point) {
  const std::size_t place = trials_.size();
  Trial trial;
  trial.id = id;
  trial.point = std::move(point);
  trials_.push_back(std::move(trial));
  places_.add(id, static_cast<std::uint32_t>(place));
  if (maybe_running_.size() > 2 * running_count_ + 16)
    std::erase_if(maybe_running_, [&](std::size_t old) { return !trials_[old].is_running(); });
  maybe_running_.push_back(place);
  ++running_count_;
  ++asked_;
  on_ask(place);
}

Trial& Sampler::ongoing(TrialId id, const char* what) {
  const auto number = static_cast<std::uint64_t>(id);
  const auto place = places_.find(id);
  if (!place) throw_error(ErrorCode::not_found, "{}: trial {} was never started", what, number);
  Trial& trial = trials_[*place];
  if (!trial.is_running())
    throw_error(ErrorCode::failed_precondition, "{}: trial {} has ended before ({})", what, number,
                to_string(trial.state));
  return trial;
}

void Sampler::report(TrialId id, double budget, std::span<const double> values) {
  Trial& trial = ongoing(id, "report");
  if (values.size() != objectives())
    throw_error(ErrorCode::invalid_argument, "report: there are {} values for {} objectives",
                values.size(), objectives());
  if (!std::isfinite(budget) || budget < trial.budget)
    throw_error(ErrorCode::invalid_argument, "report: the budget {} is below the last one, {}",
                budget, trial.budget);
  // A value that is not finite says nothing about how good the trial is.
  if (!std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); })) return;
  trial.budget = budget;
  trial.values.assign(values.begin(), values.end());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (options_.directions[i] == Direction::maximize) trial.values[i] = -trial.values[i];
  on_report(static_cast<std::size_t>(&trial - trials_.data()));
}

void Sampler::settle_outcome(Trial& trial, const Outcome& outcome) const {
  if (outcome.state == TrialState::running)
    throw_error(ErrorCode::invalid_argument, "tell: a trial cannot end as running");
  const bool needs_values = outcome.state == TrialState::complete ||
                            (outcome.state == TrialState::pruned && !outcome.values.empty());
  if (needs_values && outcome.values.size() != objectives())
    throw_error(ErrorCode::invalid_argument, "tell: there are {} values for {} objectives",
                outcome.values.size(), objectives());
  trial.state = outcome.state;
  if (needs_values) {
    trial.values = outcome.values;
    for (std::size_t i = 0; i < trial.values.size(); ++i)
      if (options_.directions[i] == Direction::maximize) trial.values[i] = -trial.values[i];
  }
  const bool finite = std::all_of(trial.values.begin(), trial.values.end(),
                                  [](double value) { return std::isfinite(value); });
  if (trial.state == TrialState::failed || trial.values.empty() || !finite) {
    trial.state = TrialState::failed;
    trial.values.clear();
  }
  trial.violation = 0;
  for (const double constraint : outcome.constraints) {
    // Not known to be feasible is not feasible.
    if (std::isnan(constraint)) trial.violation = std::numeric_limits<double>::infinity();
    if (constraint > 0) trial.violation += constraint;
  }
}

void Sampler::tell(TrialId id, const Outcome& outcome) {
  Trial& trial = ongoing(id, "tell");
  settle_outcome(trial, outcome);
  --running_count_;
  on_tell(static_cast<std::size_t>(&trial - trials_.data()));
}

void Sampler::add(Point point, const Outcome& outcome) {
  if (!space_->allows(point)) {
    Random probe(0);
    if (point.size() != space_->size() || !space_->settle(point, probe))
      throw_error(ErrorCode::invalid_argument, "add: the point is not in the space");
  }
  Trial trial;
  trial.point = std::move(point);
  settle_outcome(trial, outcome);
  trials_.push_back(std::move(trial));
  on_tell(trials_.size() - 1);
}

}  // namespace kolo::search
