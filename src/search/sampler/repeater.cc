#include "search/sampler/repeater.h"

#include <algorithm>
#include <unordered_map>

#include "search/sampler/wrapper.h"
#include "search/settings.h"

namespace kolo::search {
namespace {

class Repeater final : public Sampler {
 public:
  Repeater(std::shared_ptr<const Space> space, SamplerOptions options)
      : Sampler("repeater", std::move(space), std::move(options), StartingPoints::own),
        inner_(make_inner()) {}

  [[nodiscard]] bool exhausted() const override {
    return asked() % repeat_ == 0 && inner_.sampler().exhausted();
  }

  [[nodiscard]] std::string explain() const override {
    return "repeater: everything " + std::to_string(repeat_) + " times; " +
           inner_.sampler().explain();
  }

 protected:
  std::vector<Point> propose(std::size_t) override {
    if (asked() % repeat_ != 0) return {groups_.back().point};
    auto point = inner_.ask(asked() / repeat_);
    if (!point) return {};
    return {*std::move(point)};
  }

  void on_ask(std::size_t place) override {
    const std::uint64_t number = asked() - 1;
    if (number % repeat_ == 0) {
      inner_.begin(number / repeat_, trials()[place].point);
      groups_.push_back({trials()[place].point, {}});
    }
    group_of_[place] = number / repeat_;
  }

  void on_tell(std::size_t place) override {
    const Outcome outcome = outcome_of(trials()[place], options().directions);
    if (!trials()[place].id) {
      inner_.sampler().add(trials()[place].point, outcome);
      return;
    }
    const std::uint64_t number = group_of_.at(place);
    Group& group = groups_[number];
    group.outcomes.push_back(outcome);
    if (group.outcomes.size() == repeat_) inner_.sampler().tell(TrialId{number}, mean_of(group));
  }

 private:
  struct Group {
    Point point;
    std::vector<Outcome> outcomes;
  };

  std::unique_ptr<Sampler> make_inner() {
    SettingsReader settings("repeater", options());
    repeat_ = static_cast<std::uint64_t>(settings.integer("repeat", 1, 1, 1'000'000));
    const std::string name = settings.text("sampler", "random");
    const Value* inner = settings.raw("settings");
    settings.done();
    SamplerOptions under = inner_options(options(), inner);
    if (under.budget) under.budget = std::max<std::uint64_t>(*under.budget / repeat_, 1);
    return make_sampler(name, shared_space(), std::move(under));
  }

  [[nodiscard]] Outcome mean_of(const Group& group) const {
    Outcome mean = Outcome::failed();
    double count = 0;
    double violation = 0;
    for (const Outcome& outcome : group.outcomes) {
      if (outcome.state == TrialState::failed) continue;
      if (count == 0) mean = {TrialState::complete, std::vector<double>(objectives(), 0), {}};
      ++count;
      for (std::size_t i = 0; i < objectives(); ++i) mean.values[i] += outcome.values[i];
      for (const double constraint : outcome.constraints) violation += constraint;
    }
    for (double& value : mean.values) value /= count;
    if (violation > 0) mean.constraints.push_back(violation / count);
    return mean;
  }

  std::uint64_t repeat_ = 1;
  Follower inner_;
  std::vector<Group> groups_;
  std::unordered_map<std::size_t, std::uint64_t> group_of_;  // of places
};

}  // namespace

std::unique_ptr<Sampler> make_repeater(std::shared_ptr<const Space> space, SamplerOptions options) {
  return std::make_unique<Repeater>(std::move(space), std::move(options));
}

}  // namespace kolo::search
