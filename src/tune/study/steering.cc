// The order of a report: the stopper sees the result; the scheduler rules about it, or is only told
// when the trial is over anyway; the sampler hears the values last. replay() makes the same calls
// with the verdict that the journal has. The number of trials is limited here (wanted_), except
// that a grid counts by itself.
#include "tune/study/steering.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/errors.h"
#include "base/registry.h"
#include "kolo/random.h"
#include "tune/study/population_policy.h"
#include "tune/study/rank_sharing.h"
#include "tune/trial/trial_info.h"

namespace kolo::tune {
namespace {

using search::Direction;
using search::TrialId;

constexpr std::string_view kVariants = "grid";
/// The rule by which schedulers end trials that were never behind.
constexpr std::string_view kAllItsTime = "max_t";
/// Samplers that do not look at results, and need no metric.
constexpr std::array<std::string_view, 5> kBlindSamplers = {"grid", "random", "sobol", "halton",
                                                            "lhs"};

TrialId id_of(std::int64_t number) { return TrialId{static_cast<std::uint64_t>(number)}; }
std::int64_t number_of(TrialId id) { return static_cast<std::int64_t>(id); }

std::vector<Objective> objectives_of(const Options& options) {
  if (!options.objectives.empty()) {
    if (!options.metric.empty())
      throw_error(ErrorCode::invalid_argument,
                  "give either metric and mode, or objectives, but not both");
    return options.objectives;
  }
  if (options.metric.empty()) {
    if (!options.mode.empty())
      throw_error(ErrorCode::invalid_argument, "mode is '{}', but no metric is given",
                  options.mode);
    return {};
  }
  if (options.mode != "min" && options.mode != "max")
    throw_error(ErrorCode::invalid_argument,
                "the mode of the metric '{}' must be min or max, not '{}'", options.metric,
                options.mode);
  return {{options.metric, options.mode == "min" ? Direction::minimize : Direction::maximize}};
}

std::vector<Direction> directions_of(const std::vector<Objective>& objectives) {
  std::vector<Direction> directions;
  for (const auto& objective : objectives) directions.push_back(objective.direction);
  if (directions.empty()) directions.push_back(Direction::minimize);
  return directions;
}

Ruling ruling_of(const search::Decision& decision) {
  Ruling ruling;
  switch (decision.action) {
    case search::Action::proceed: ruling.verdict = Verdict::proceed; break;
    case search::Action::stop:
      ruling.verdict = decision.reason.rule == kAllItsTime ? Verdict::full : Verdict::stop;
      break;
    case search::Action::pause: ruling.verdict = Verdict::pause; break;
    case search::Action::clone: ruling.verdict = Verdict::clone; break;
  }
  // Most results go on, for which nobody asks why.
  if (ruling.verdict != Verdict::proceed) ruling.reason = decision.reason.to_string();
  if (decision.source) ruling.source = number_of(*decision.source);
  ruling.config = decision.config;
  ruling.save = decision.save;
  return ruling;
}

bool says_done(const Value& result) {
  const Value* done = result.find_path("done");
  return done != nullptr && done->is_bool() && done->as_bool();
}

bool is_replay(const Options& options) { return options.scheduler.name == "pbt_replay"; }

std::shared_ptr<const search::Space> space_of(const Options& options) {
  if (options.space) return options.space;
  const auto* parameters = std::get_if<Spec::Dict>(&options.config.data());
  if (!is_replay(options) || parameters == nullptr || !parameters->empty())
    return std::make_shared<const search::Space>(options.config);
  Spec::Dict constants;
  const Value first = first_config(policy_to_repeat(options.scheduler));
  for (const auto& [name, value] : first.as_dict()) constants.emplace(name, value);
  return std::make_shared<const search::Space>(Spec(std::move(constants)));
}

[[noreturn]] void throw_missing(const std::string& metric, const Value& result) {
  constexpr std::size_t kMost = 20;  // programs may report very many
  std::vector<std::string_view> names;
  for (const auto& [key, item] : result.as_dict())
    if (!is_own_field(key)) names.push_back(key);
  const std::string_view near = nearest_name(metric, names);
  const std::size_t more = names.size() - std::min(names.size(), kMost);
  names.resize(names.size() - more);
  throw_error(ErrorCode::not_found,
              "the result has no '{0}'; it has {1}{2}. {3}Trials must report a number by the name "
              "of the study's metric, {0}",
              metric, names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", ")),
              more > 0 ? fmt::format(" and {} more", more) : "",
              near.empty() ? "" : fmt::format("Did you mean '{}'? ", near));
}

/// As it was told to the sampler whose history this trial is from.
search::Outcome outcome_of(const search::Trial& trial, const std::vector<Objective>& objectives) {
  search::Outcome outcome{trial.state, trial.values, {}};
  for (std::size_t i = 0; i < std::min(outcome.values.size(), objectives.size()); ++i)
    if (objectives[i].direction == search::Direction::maximize)
      outcome.values[i] = -outcome.values[i];
  if (trial.violation > 0) outcome.constraints = {trial.violation};
  return outcome;
}

}  // namespace

Steering::Steering(const Options& options)
    : space_(space_of(options)),
      objectives_(objectives_of(options)),
      seed_(options.seed),
      concurrency_(options.search_alg.max_concurrent) {
  if (options.num_samples == 0 || options.num_samples < -1)
    throw_error(ErrorCode::invalid_argument,
                "num_samples must be at least 1, or -1 for a study without end, not {}",
                options.num_samples);
  make_sampler(options);
  make_scheduler(options);
  make_stopper(options);
}

void Steering::make_sampler(const Options& options) {
  const SearchAlg& search = options.search_alg;
  const std::string name = search.name.empty() ? std::string(kVariants) : search.name;
  search::SamplerOptions sampler;
  sampler.directions = directions_of(objectives_);
  sampler.seed = options.seed;
  sampler.settings = search.settings;
  sampler.points_to_evaluate = search.points_to_evaluate;
  counts_through_grid_ = name == kVariants;
  if (name == kVariants && sampler.settings.contains("num_samples")) {
    wanted_ = options.num_samples;  // rounds and trials are limited each on their own
  } else if (name == kVariants) {
    // Every combination so many times: the sampler counts.
    sampler.settings.emplace("num_samples", options.num_samples);
    if (options.num_samples > 0 && search.points_to_evaluate.empty()) {
      planned_variants_ = options.num_samples;
      for (const auto& parameter : space_->parameters())
        if (parameter.grid) *planned_variants_ *= static_cast<std::int64_t>(parameter.cardinality);
    }
  } else {
    wanted_ = options.num_samples;
    if (wanted_ > 0) sampler.budget = static_cast<std::uint64_t>(wanted_);
    const bool blind =
        std::find(kBlindSamplers.begin(), kBlindSamplers.end(), name) != kBlindSamplers.end();
    if (objectives_.empty() && !blind)
      throw_error(ErrorCode::invalid_argument, "the search '{}' needs a metric and its mode", name);
  }
  sampler_ = search.make ? search.make(space_, std::move(sampler))
                         : search::make_sampler(name, space_, std::move(sampler));
  for (const KnownResult& known : search.known)
    sampler_->add(space_->point(known.config), known.values.empty()
                                                   ? search::Outcome::failed()
                                                   : search::Outcome::complete(known.values));
  reports_to_sampler_ = !objectives_.empty();
}

void Steering::extend(const Options& options) {
  if (wanted_ >= 0) {
    wanted_ = options.num_samples;
    return;
  }
  // This sampler counts by itself, so another one takes over where it stands, as after a resume.
  const auto before = std::move(sampler_);
  make_sampler(options);
  for (const auto& trial : before->trials()) {
    if (!trial.id) continue;  // make_sampler() has added it
    sampler_->recall(*trial.id, trial.point);
    if (!trial.is_running()) sampler_->tell(*trial.id, outcome_of(trial, objectives_));
  }
}

void Steering::make_scheduler(const Options& options) {
  const Scheduling& wanted = options.scheduler;
  search::SchedulerOptions scheduler;
  scheduler.directions = directions_of(objectives_);
  scheduler.seed = options.seed;
  scheduler.settings = wanted.settings;
  time_attr_ = wanted.time_attr;
  if (const auto setting = scheduler.settings.extract("time_attr"); !setting.empty())
    time_attr_ = setting.mapped().as_string();
  scheduler.settings.erase(kReuseWorkers);  // which concerns the study
  if (is_replay(options)) {
    scheduler.settings.insert_or_assign("policy", policy_to_repeat(wanted));
    scheduler.settings.erase("policy_file");
  }
  scheduler.explore = wanted.explore;
  const bool population = wanted.name == "pbt" || wanted.name == "pb2";
  if (wanted.mutations)
    scheduler.mutations = std::make_shared<const search::Space>(*wanted.mutations);
  else if (population)
    scheduler.mutations = space_;  // everything may change
  needs_configs_ = population || wanted.make;
  scheduler_ = wanted.make ? wanted.make(std::move(scheduler))
                           : search::make_scheduler(wanted.name, std::move(scheduler));
  if (!scheduler_)
    throw_error(ErrorCode::invalid_argument, "Scheduling::make returned no scheduler");
  if (time_attr_.empty())
    time_attr_ = scheduler_->counts_seconds() ? "time_total_s" : "training_iteration";
  if (objectives_.empty() && scheduler_->name() != "fifo")
    throw_error(ErrorCode::invalid_argument, "the scheduler '{}' needs a metric and its mode",
                scheduler_->name());
}

void Steering::make_stopper(const Options& options) {
  std::vector<std::unique_ptr<search::Stopper>> stoppers;
  if (!options.stop.empty()) stoppers.push_back(search::metric_stopper(options.stop));
  if (options.stopper) stoppers.push_back(options.stopper());
  if (options.time_budget) stoppers.push_back(search::timeout_stopper(*options.time_budget));
  stopper_ = stoppers.empty()       ? nullptr
             : stoppers.size() == 1 ? std::move(stoppers.front())
                                    : search::combined_stopper(std::move(stoppers));
}

std::optional<Steering::Proposal> Steering::ask(std::int64_t number) {
  if (!wants_more()) return std::nullopt;
  auto point = sampler_->ask(id_of(number));
  if (!point) return std::nullopt;
  ++asked_;
  std::optional<Proposal> proposal(std::in_place);
  proposal->config = config_of(number, *point);
  proposal->point = std::move(*point);
  scheduler_->add(id_of(number), proposal->config);
  proposal->config = scheduler_->config(id_of(number));  // a population completes it
  return proposal;
}

void Steering::check_stored(std::int64_t number, const search::Point& point) const {
  const auto refuse = [number] {
    throw_error(ErrorCode::corruption,
                "the database is damaged: the point of trial {} is none of the study's space",
                number);
  };
  if (point.size() != space_->size()) refuse();
  for (std::size_t i = 0; i < point.size(); ++i) {
    const auto& choices = space_->parameters()[i].choices;
    const bool is_choice = choices && !std::isnan(point[i]);
    if (is_choice && !(point[i] >= 0 && point[i] < static_cast<double>(choices->size()))) refuse();
  }
}

Value Steering::config_of(std::int64_t number, const search::Point& point) const {
  Random random = Random(seed_).stream("config", static_cast<std::uint64_t>(number));
  return space_->config(point, random);
}

std::optional<std::int64_t> Steering::planned() const {
  if (wanted_ >= 0) return wanted_;
  return planned_variants_;
}

void Steering::recall(std::int64_t number, search::Point point, const Value& config) {
  sampler_->recall(id_of(number), std::move(point));
  ++asked_;
  scheduler_->add(id_of(number), config);
}

std::string Steering::scheduler_status() const {
  std::string text = scheduler_->status();
  const auto end_of_name = std::min(text.find('\n'), text.size());
  if (end_of_name < text.size()) text.insert(end_of_name, fmt::format(", by {}", time_attr_));
  return text;
}

bool Steering::exhausted() const { return sampler_->exhausted(); }

bool Steering::wants_more() const {
  return (wanted_ < 0 || asked_ < wanted_) && !sampler_->exhausted();
}

std::vector<double> Steering::values_of(const Value& result) const {
  std::vector<double> values;
  for (const auto& objective : objectives_) {
    const Value* value = result.find_path(objective.metric);
    if (value == nullptr) throw_missing(objective.metric, result);
    if (!value->is_number())
      throw_error(ErrorCode::invalid_argument, "the result's '{}' is not a number but {}{}",
                  objective.metric, value->to_string(),
                  value->is_list()
                      ? "; a problem with several objectives says so in its file, as in "
                        "`objectives: 2`"
                      : "");
    values.push_back(value->as_number());
  }
  return values;
}

search::Result Steering::result_for(const Value& result, bool others_wait) const {
  search::Result for_scheduler;
  for_scheduler.values = values_of(result);
  if (objectives_.empty()) for_scheduler.values.push_back(0);
  const Value* time = result.find_path(time_attr_);
  if (time == nullptr || !time->is_number())
    throw_error(ErrorCode::not_found,
                "the result has no number '{}', by which the scheduler measures time (time_attr)",
                time_attr_);
  for_scheduler.time = time->as_number();
  for_scheduler.others_wait = others_wait;
  if (const Value* iteration = result.find_path("training_iteration");
      iteration != nullptr && iteration->is_number())
    for_scheduler.iteration = iteration->as_number();
  return for_scheduler;
}

void Steering::tell_sampler(std::int64_t number, const Value& result,
                            std::span<const double> values) {
  if (!reports_to_sampler_) return;
  const Value* time = result.find_path(time_attr_);
  const double budget = time != nullptr && time->is_number() ? time->as_number() : 0;
  // A trial that was cloned may go back in time; to the sampler it stands still meanwhile.
  try {
    sampler_->report(id_of(number), budget, values);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
  }
}

Ruling Steering::report(std::int64_t number, const Value& result, bool others_wait, bool last) {
  const search::Result for_scheduler = result_for(result, others_wait);
  Ruling ruling;
  const bool rule = stopper_ && stopper_->stop(id_of(number), result);
  const bool done = says_done(result);
  if (rule && !done) {
    ruling.verdict = Verdict::rule;
    ruling.reason = "a stopping rule";
  } else if (done || last) {
    ruling.verdict = Verdict::done;
  }
  if (ruling.verdict == Verdict::proceed)
    ruling = ruling_of(scheduler_->result(id_of(number), for_scheduler));
  else
    scheduler_->last_result(id_of(number), for_scheduler);
  if (!objectives_.empty()) tell_sampler(number, result, for_scheduler.values);
  return ruling;
}

Ruling Steering::replay(std::int64_t number, const Value& result, bool others_wait,
                        Verdict verdict) {
  Ruling ruling;
  ruling.verdict = verdict;
  const search::Result for_scheduler = result_for(result, others_wait);
  if (stopper_) static_cast<void>(stopper_->stop(id_of(number), result));
  if (verdict != Verdict::rule && verdict != Verdict::done)
    ruling = ruling_of(scheduler_->result(id_of(number), for_scheduler));
  else
    scheduler_->last_result(id_of(number), for_scheduler);
  if (!objectives_.empty()) tell_sampler(number, result, for_scheduler.values);
  return ruling;
}

void Steering::end(std::int64_t number, const search::Outcome& outcome) {
  sampler_->tell(id_of(number), outcome);
  if (outcome.state == search::TrialState::failed)
    scheduler_->fail(id_of(number));
  else
    scheduler_->complete(id_of(number));
}

std::vector<std::pair<std::int64_t, Ruling>> Steering::take_rulings() {
  std::vector<std::pair<std::int64_t, Ruling>> rulings;
  for (auto& [id, decision] : scheduler_->take_decisions())
    rulings.emplace_back(number_of(id), ruling_of(decision));
  return rulings;
}

std::optional<std::int64_t> Steering::next(std::span<const std::int64_t> waiting) const {
  std::vector<TrialId> ids;
  ids.reserve(waiting.size());
  for (const std::int64_t number : waiting) ids.push_back(id_of(number));
  const auto chosen = scheduler_->next(ids);
  return chosen ? std::optional(number_of(*chosen)) : std::nullopt;
}

bool Steering::study_over(std::chrono::duration<double> elapsed) const {
  return stopper_ && stopper_->stop_all(elapsed);
}

}  // namespace kolo::tune
