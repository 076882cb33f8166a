// on_result decides when a trial is due; quantiles() sorts the trials that have reported in;
// treat() decides about one of them by the quantile it is in. With `synch` a trial that is due
// pauses until meet() finds that all others wait, too, and treats all of them at once.
//
// A trial that copies another takes over the time of its source, since it continues from that
// checkpoint. Each copy is one line of the policy, in the form of Tune's policy files.
#include "search/scheduler/population.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"

namespace kolo::search {

Population::Population(std::string name, SchedulerOptions given, SettingsReader& settings)
    : Scheduler(std::move(name), std::move(given)) {
  interval_ = settings.number("perturbation_interval", 60, 1e-300);
  burn_in_ = settings.number("burn_in_period", 0, 0);
  fraction_ = settings.number("quantile_fraction", 0.25, 0, 0.5);
  synch_ = settings.truth("synch", false);
  next_meeting_ = std::max(interval_, burn_in_);
  if (options().mutations == nullptr || options().mutations->varied_paths().empty())
    throw_error(ErrorCode::invalid_argument,
                "scheduler '{}': no parameters may change; set `mutations` to a space with the "
                "parameters that may change and their bounds",
                this->name());
}

void Population::on_add(Slot slot) {
  Random random = Random(options().seed).stream("population fill", slot);
  set_config(slot, fill_missing(config_of(slot), mutations(), random));
  members_.emplace_back();
}

std::vector<Scheduler::Slot> Population::live() const {
  std::vector<Slot> all;
  for (Slot slot = 0; slot < members_.size(); ++slot)
    if (!entry(slot).ended) all.push_back(slot);
  return all;
}

Decision Population::on_result(Slot slot, const Result& result, std::span<const double> scores) {
  Member& member = members_[slot];
  member.time = result.time;
  member.iteration = result.iteration.value_or(result.time);
  member.waits = false;
  double due = synch_ ? next_meeting_ : std::max(burn_in_, member.last_treatment + interval_);
  if (result.time < due)
    return {Action::proceed, {.rule = "between perturbations", .milestone = due}};

  member.scores.assign(scores.begin(), scores.end());
  member.scored = true;
  on_report_in(slot, result, scores[0]);
  if (synch_) {
    member.waits = true;
    Decision mine{
        .action = Action::pause, .reason = {.rule = "waits for the others"}, .save = true};
    meet(false, slot, &mine);
    return mine;
  }
  member.last_treatment = result.time;
  Decision decision = treat(slot, quantiles());
  if (decision.action == Action::proceed && result.others_wait) {
    decision.action = Action::pause;
    decision.save = true;
  }
  return decision;
}

Population::Quantiles Population::quantiles() const {
  std::vector<Slot> scored;
  std::vector<Objectives> scores;
  for (Slot slot : live()) {
    if (!members_[slot].scored) continue;
    scored.push_back(slot);
    scores.push_back(members_[slot].scores);
  }
  Quantiles result;
  for (std::size_t index : best_first(scores)) result.order.push_back(scored[index]);
  std::size_t n = result.order.size();
  if (n <= 1) return result;
  auto size = static_cast<std::size_t>(std::ceil(static_cast<double>(n) * fraction_));
  size = std::min(size, n / 2);
  auto part = static_cast<std::ptrdiff_t>(size);
  result.upper.assign(result.order.begin(), result.order.begin() + part);
  result.lower.assign(result.order.end() - part, result.order.end());
  return result;
}

Decision Population::treat(Slot slot, const Quantiles& quantiles) {
  auto place = std::find(quantiles.order.begin(), quantiles.order.end(), slot);
  Decision decision{
      .reason = {.rule = "middle",
                 .rank = static_cast<std::uint64_t>(place - quantiles.order.begin()) + 1,
                 .among = quantiles.order.size()}};
  if (objectives() == 1) decision.reason.value = members_[slot].scores[0];
  auto contains = [&](const std::vector<Slot>& slots) {
    return std::find(slots.begin(), slots.end(), slot) != slots.end();
  };
  if (contains(quantiles.upper)) {
    decision.reason.rule = "upper quantile";
    decision.save = true;
  } else if (contains(quantiles.lower)) {
    Random random = Random(options().seed).stream("population", treatments_++);
    Slot source = quantiles.upper[random.below(quantiles.upper.size())];
    decision.action = Action::clone;
    decision.reason.rule = "exploit";
    if (objectives() == 1) decision.reason.cutoff = members_[source].scores[0];
    decision.source = entry(source).id;
    decision.config = vary(slot, source, random);
    Value::List line;  // filled one by one: GCC 12 warns of a list in braces for no reason
    line.reserve(6);
    line.emplace_back(static_cast<std::uint64_t>(entry(slot).id));
    line.emplace_back(static_cast<std::uint64_t>(entry(source).id));
    line.emplace_back(members_[slot].iteration);
    line.emplace_back(members_[source].iteration);
    line.push_back(config_of(source));
    line.push_back(*decision.config);
    policy_.emplace_back(std::move(line));
    // From now on it is where its source was.
    members_[slot].time = members_[slot].last_treatment = members_[source].time;
    members_[slot].iteration = members_[source].iteration;
  }
  return decision;
}

void Population::meet(bool without_others, std::optional<Slot> reporter, Decision* mine) {
  std::vector<Slot> here;
  for (Slot slot : live()) {
    if (members_[slot].waits)
      here.push_back(slot);
    else if (!without_others && !entry(slot).stopped)
      return;
  }
  if (here.empty()) return;
  double latest = 0;
  for (Slot slot : here) latest = std::max(latest, members_[slot].time);
  next_meeting_ = std::max(next_meeting_ + interval_, latest);
  Quantiles all = quantiles();
  for (Slot slot : here) {
    members_[slot].waits = false;
    Decision decision = treat(slot, all);
    if (reporter == slot)
      *mine = std::move(decision);
    else
      announce(slot, std::move(decision));
  }
}

void Population::on_last_result(Slot slot, const Result& result, std::span<const double> scores) {
  on_report_in(slot, result, scores[0]);
}

void Population::on_end(Slot, bool) {
  if (synch_) meet(false, {}, nullptr);
}

void Population::on_stalled() {
  if (synch_) meet(true, {}, nullptr);
}

std::optional<Scheduler::Slot> Population::choose(std::span<const Slot> waiting) const {
  std::optional<Slot> chosen;
  for (Slot slot : waiting)
    if (!members_[slot].waits && (!chosen || members_[slot].time < members_[*chosen].time))
      chosen = slot;
  return chosen;
}

namespace {

class PopulationBasedTraining final : public Population {
 public:
  PopulationBasedTraining(SchedulerOptions given, SettingsReader settings)
      : Population("pbt", std::move(given), settings) {
    explore_.resample_probability = settings.number("resample_probability", 0.25, 0, 1);
    if (const Value* factors = settings.raw("perturbation_factors")) {
      if (!factors->is_list() || factors->as_list().size() != 2)
        settings.refuse("perturbation_factors", "must be a list of two numbers");
      explore_.factor_up = factors->as_list()[0].as_number();
      explore_.factor_down = factors->as_list()[1].as_number();
    }
    settings.done();
  }

 private:
  Value vary(Slot, Slot source, Random& random) override {
    Value varied = search::explore(config_of(source), mutations(), explore_, random);
    return options().explore ? options().explore(varied) : varied;
  }

  ExploreSettings explore_;
};

}  // namespace

std::unique_ptr<Scheduler> make_population(SchedulerOptions options) {
  auto values = options.settings;
  return std::make_unique<PopulationBasedTraining>(std::move(options),
                                                   SettingsReader("scheduler pbt", values));
}

}  // namespace kolo::search
