// The plan is a list of phases, each with a sampler and the number of the trial at which it ends.
// All samplers of the plan are created at once and hear of every trial that they will need, so that
// a later phase begins with the whole history. Which phase answers an ask depends on the number of
// the trial alone.
#include "search/sampler/auto_sampler.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "search/sampler/wrapper.h"
#include "search/settings.h"

namespace kolo::search {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kGpTrials = 500;
constexpr std::uint64_t kForestTrials = 5000;

struct Phase {
  std::string sampler;
  std::uint64_t until;  // trials with a smaller number are its own
};

struct Plan {
  std::vector<Phase> phases;
  std::string why;
};

Plan plan_for(const Space& space, const SamplerOptions& options) {
  const std::size_t count = space.size();
  const std::uint64_t budget = options.budget.value_or(0);
  std::size_t categorical = 0;
  bool continuous = true, huge = false;
  for (const Parameter& parameter : space.parameters()) {
    categorical += parameter.kind == Parameter::Kind::categorical;
    continuous = continuous && parameter.is_number();
    huge = huge || (parameter.kind == Parameter::Kind::categorical && parameter.cardinality > 1000);
  }
  const auto one = [](const char* sampler, const char* why) {
    return Plan{{{sampler, kNever}}, why};
  };
  if (count == 0) return one("random", "there is nothing to choose");
  if (options.directions.size() > 1) {
    if (budget >= 1000) return one("nsga2", "several objectives and many trials");
    return one("tpe", "several objectives");
  }
  if (huge) return one("tpe", "a choice of very many values, which models cannot encode");
  if (continuous && !space.has_conditions() && budget >= 100 * count && budget > kGpTrials)
    return {{{"gp", std::min<std::uint64_t>(10 * count + 50, kGpTrials)}, {"cmaes", kNever}},
            "numbers only and many trials for each: a model finds the region, evolution the place"};
  if (space.has_conditions() || 2 * categorical >= count)
    return {{{"forest", kForestTrials}, {"tpe", kNever}},
            "conditions or choices without order, which trees take as they are"};
  if (count <= 40)
    return {{{"gp", kGpTrials}, {"tpe", kNever}},
            "few parameters, mostly ordered: a smooth model uses every trial best"};
  return {{{"forest", kForestTrials}, {"tpe", kNever}}, "many parameters"};
}

class AutoSampler final : public Sampler {
 public:
  AutoSampler(std::shared_ptr<const Space> space, SamplerOptions options)
      : Sampler("auto", std::move(space), std::move(options), StartingPoints::own),
        plan_(plan_for(this->space(), this->options())) {
    SettingsReader("auto", this->options()).done();
    for (const Phase& phase : plan_.phases)
      inner_.emplace_back(
          make_sampler(phase.sampler, shared_space(), inner_options(this->options(), nullptr)));
  }

  [[nodiscard]] std::string explain() const override {
    std::string text = "auto: ";
    for (const Phase& phase : plan_.phases) {
      if (&phase != &plan_.phases.front()) text += ", then ";
      text += phase.sampler;
      if (phase.until != kNever) text += " for " + std::to_string(phase.until) + " trials";
    }
    return text + ", because: " + plan_.why;
  }

 protected:
  std::vector<Point> propose(std::size_t) override {
    std::size_t phase = 0;
    while (asked() >= plan_.phases[phase].until) ++phase;
    auto point = inner_[phase].ask(asked());
    if (!point) return {};
    return {*std::move(point)};
  }

  void on_ask(std::size_t place) override {
    const std::uint64_t number = asked() - 1;
    numbers_[place] = number;
    for (const std::size_t phase : live_phases(number))
      inner_[phase].begin(number, trials()[place].point);
  }

  void on_report(std::size_t place) override {
    const Trial& trial = trials()[place];
    const Outcome now = outcome_of(trial, options().directions);
    for (const std::size_t phase : live_phases(numbers_.at(place)))
      inner_[phase].sampler().report(TrialId{numbers_.at(place)}, trial.budget, now.values);
  }

  void on_tell(std::size_t place) override {
    const Outcome outcome = outcome_of(trials()[place], options().directions);
    const bool elsewhere = !trials()[place].id;
    for (const std::size_t phase : live_phases(elsewhere ? asked() : numbers_.at(place))) {
      if (elsewhere)
        inner_[phase].sampler().add(trials()[place].point, outcome);
      else
        inner_[phase].sampler().tell(TrialId{numbers_.at(place)}, outcome);
    }
  }

 private:
  // Those whose time has not ended when the trial begins need to know of it.
  [[nodiscard]] std::vector<std::size_t> live_phases(std::uint64_t number) const {
    std::vector<std::size_t> live;
    for (std::size_t i = 0; i < plan_.phases.size(); ++i)
      if (number < plan_.phases[i].until) live.push_back(i);
    return live;
  }

  Plan plan_;
  std::vector<Follower> inner_;
  std::unordered_map<std::size_t, std::uint64_t> numbers_;  // of places
};

}  // namespace

std::unique_ptr<Sampler> make_auto_sampler(std::shared_ptr<const Space> space,
                                           SamplerOptions options) {
  return std::make_unique<AutoSampler>(std::move(space), std::move(options));
}

}  // namespace kolo::search
