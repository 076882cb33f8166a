// What every sampler keeps to, run over the whole table.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kolo/error.h"
#include "kolo/random.h"
#include "kolo/search.h"

namespace kolo::search {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using SpacePointer = std::shared_ptr<const Space>;

SpacePointer mixed_space() {
  return Space::Builder()
      .add("a", uniform(-1, 1))
      .add("b", loguniform(1e-5, 1))
      .add("c", integer(1, 200))
      .add("d", quniform(0, 1, 0.25))
      .add("e", choice({"x", "y", "z"}))
      .add("f", ordinal({1, 2, 4, 8}))
      .add("g", randn(0, 2))
      .add("h", grid_search({1, 2, 3}))
      .add("i", lograndint(1, 1000))
      .build();
}

SpacePointer conditional_space() {
  return Space::Builder()
      .add("model", choice({"tree", "net", "none"}))
      .add("tree/depth", integer(1, 10))
      .add("net/layers", integer(1, 3))
      .add("net/units/0", integer(1, 64))
      .add("net/units/1", integer(1, 64))
      .add("rate", uniform(0, 1))
      .condition("tree", equals("model", "tree"))
      .condition("net", equals("model", "net"))
      .condition("net/units/1", greater("net/layers", 1))
      .build();
}

SpacePointer refusing_space() {
  return Space::Builder()
      .add("a", integer(0, 9))
      .add("b", integer(0, 9))
      .add("c", choice({"p", "q"}))
      .forbid(all_of({equals("c", "q"), greater("a", 4)}))
      .constraint([](const Value& config) {
        return config.at_path("a").as_integer() + config.at_path("b").as_integer() != 7;
      })
      .build();
}

SpacePointer tiny_space() {
  return Space::Builder().add("a", choice({"p", "q"})).add("b", integer(0, 1)).build();
}

SpacePointer empty_space() { return Space::Builder().add("constant", 1).build(); }

SpacePointer huge_space() {
  std::vector<Value> many;
  for (int i = 0; i < 1'000'000; ++i) many.emplace_back(i);
  return Space::Builder().add("a", choice(std::move(many))).add("b", uniform(0, 1)).build();
}

SamplerOptions options_for(const std::string& name, std::size_t objectives = 1) {
  SamplerOptions options;
  options.seed = 42;
  options.directions.assign(objectives, Direction::minimize);
  options.directions[0] = Direction::maximize;
  if (name == "grid") options.settings["num_samples"] = -1;
  if (name == "evolution" || name == "nsga2") options.settings["population"] = 12;
  if (name == "agebo")  // something to evolve and something to optimise in every space
    options.settings = {{"population", 12},
                        {"n_initial_points", 5},
                        {"evolve", Value::List{"c", "e", "f", "net", "model"}}};
  if (name == "concurrency_limiter")
    options.settings = {{"sampler", "tpe"}, {"max_concurrent", 3}, {"batch", true}};
  if (name == "repeater") options.settings = {{"sampler", "tpe"}, {"repeat", 2}};
  return options;
}

double objective(const Point& point, std::size_t which) {
  double sum = 0;
  for (std::size_t i = 0; i < point.size(); ++i)
    if (!std::isnan(point[i])) sum += std::sin(point[i] + static_cast<double>(i * (which + 1)));
  return sum;
}

struct Event {
  enum class Kind { ask, report, tell, add } kind;
  std::vector<std::uint64_t> ids;
  std::vector<Point> points;  // of ask (given ones) and add
  double budget = 0;
  std::vector<double> values;
  Outcome outcome;
};

void repeat(Sampler& sampler, const Event& event) {
  switch (event.kind) {
    case Event::Kind::ask:
      for (std::size_t i = 0; i < event.points.size(); ++i)
        sampler.recall(TrialId{event.ids[i]}, event.points[i]);
      break;
    case Event::Kind::report:
      sampler.report(TrialId{event.ids[0]}, event.budget, event.values);
      break;
    case Event::Kind::tell: sampler.tell(TrialId{event.ids[0]}, event.outcome); break;
    case Event::Kind::add: sampler.add(event.points[0], event.outcome); break;
  }
}

Outcome outcome_for(const Point& point, std::size_t objectives, Random& random) {
  std::vector<double> values;
  for (std::size_t k = 0; k < objectives; ++k) values.push_back(objective(point, k));
  Outcome outcome = Outcome::complete(std::move(values));
  const double fate = random.uniform();
  if (fate < 0.1) return Outcome::failed();
  if (fate < 0.15) outcome.values[0] = kNan;
  if (fate > 0.9) outcome.state = TrialState::pruned;
  if (fate > 0.8 && fate < 0.9) outcome.constraints = {random.uniform() - 0.3};
  return outcome;
}

// A study of many workers with everything that can happen in one.
std::vector<Event> run(Sampler& sampler, std::uint64_t seed, std::size_t trials,
                       std::size_t objectives) {
  Random random(seed);
  std::vector<Event> events;
  std::vector<std::pair<std::uint64_t, Point>> live;
  std::vector<double> budgets(10 * trials, 0);
  std::uint64_t next = 0, asked = 0;
  for (std::size_t step = 0; asked < trials && step < 20 * trials; ++step) {
    const double what = random.uniform();
    if (what < 0.35 || live.empty()) {
      Event event{Event::Kind::ask, {}, {}, 0, {}, {}};
      std::vector<TrialId> ids;
      for (std::uint64_t n = 1 + random.below(4); n > 0; --n) {
        event.ids.push_back(next);
        ids.push_back(TrialId{next++});
      }
      const auto answers = sampler.ask(ids);
      std::vector<std::uint64_t> given;
      for (std::size_t i = 0; i < answers.size(); ++i) {
        if (!answers[i]) continue;
        EXPECT_TRUE(sampler.space().allows(*answers[i])) << sampler.name();
        given.push_back(event.ids[i]);
        event.points.push_back(*answers[i]);
        live.emplace_back(event.ids[i], *answers[i]);
        ++asked;
      }
      event.ids = given;
      events.push_back(event);
    } else if (what < 0.45) {
      auto& [id, point] = live[random.below(live.size())];
      Event event{Event::Kind::report, {id}, {}, budgets[id] += 1, {}, {}};
      for (std::size_t k = 0; k < objectives; ++k)
        event.values.push_back(objective(point, k) + 0.1);
      repeat(sampler, event);
      events.push_back(event);
    } else if (what < 0.5) {
      Random elsewhere(seed + step);
      Event event{Event::Kind::add, {}, {sampler.space().sample(elsewhere)}, 0, {}, {}};
      event.outcome = outcome_for(event.points[0], objectives, random);
      repeat(sampler, event);
      events.push_back(event);
    } else {
      const std::size_t which = random.below(live.size());
      Event event{Event::Kind::tell, {live[which].first}, {}, 0, {}, {}};
      event.outcome = outcome_for(live[which].second, objectives, random);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
      repeat(sampler, event);
      events.push_back(event);
    }
  }
  EXPECT_GE(asked, trials) << sampler.name() << " stopped giving points";
  return events;
}

class SamplerConformance : public testing::TestWithParam<std::string> {
 protected:
  // Null if the sampler says that it cannot work on this space, or for so many objectives.
  static std::unique_ptr<Sampler> make(const SpacePointer& space, std::size_t objectives = 1) {
    try {
      return make_sampler(GetParam(), space, options_for(GetParam(), objectives));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
      EXPECT_NE(error.message().find("use "), std::string::npos) << "says nothing about what to do";
      return nullptr;
    }
  }
};

TEST_P(SamplerConformance, HandlesEveryKindOfSpace) {
  for (const auto& space : {mixed_space(), conditional_space(), refusing_space(), tiny_space(),
                            empty_space(), huge_space()}) {
    const auto sampler = make(space);
    if (!sampler) continue;
    run(*sampler, 1, 40, 1);
    EXPECT_FALSE(sampler->explain().empty());
  }
}

TEST_P(SamplerConformance, HandlesSeveralObjectives) {
  for (const auto& space : {mixed_space(), conditional_space()}) {
    const auto sampler = make(space, 2);
    if (!sampler) continue;
    run(*sampler, 2, 40, 2);
  }
}

TEST_P(SamplerConformance, TheSameHistoryGivesTheSameAnswers) {
  for (const auto& space : {mixed_space(), conditional_space(), refusing_space()}) {
    const auto first = make(space), second = make(space);
    const auto events = run(*first, 3, 50, 1), again = run(*second, 3, 50, 1);
    ASSERT_EQ(events.size(), again.size());
    for (std::size_t i = 0; i < events.size(); ++i)
      for (std::size_t k = 0; k < events[i].points.size(); ++k)
        ASSERT_TRUE(same_point(events[i].points[k], again[i].points[k])) << i;
  }
}

TEST_P(SamplerConformance, ContinuesFromAnyCutOfItsHistory) {
  Random cutting(4);
  for (const auto& [space, objectives] :
       {std::pair(conditional_space(), 1), {mixed_space(), 1}, {mixed_space(), 2}}) {
    const auto original = make(space, objectives);
    if (!original) continue;
    const auto events = run(*original, 5, 60, objectives);
    for (int cut = 0; cut < 50; ++cut) {
      std::size_t at = cutting.below(events.size());
      const auto rebuilt = make(space, objectives);
      for (std::size_t i = 0; i < at; ++i) repeat(*rebuilt, events[i]);
      while (at < events.size() && events[at].kind != Event::Kind::ask)
        repeat(*rebuilt, events[at++]);
      if (at == events.size()) continue;
      std::vector<TrialId> ids;
      for (const std::uint64_t id : events[at].ids) ids.push_back(TrialId{id});
      const auto answers = rebuilt->ask(ids);
      for (std::size_t k = 0; k < ids.size(); ++k) {
        ASSERT_TRUE(answers[k].has_value()) << "cut at event " << at;
        ASSERT_TRUE(same_point(*answers[k], events[at].points[k])) << "cut at event " << at;
      }
    }
  }
}

TEST_P(SamplerConformance, ABatchIsTheSameAsSingleAsks) {
  const auto together = make(refusing_space()), apart = make(refusing_space());
  std::vector<TrialId> ids;
  for (std::uint64_t id = 0; id < 3; ++id) ids.push_back(TrialId{id});
  const auto answers = together->ask(ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto answer = apart->ask(ids[i]);
    ASSERT_EQ(answer.has_value(), answers[i].has_value());
    if (answer) {
      EXPECT_TRUE(same_point(*answer, *answers[i]));
    }
  }
}

TEST_P(SamplerConformance, AllFailuresDoNotStopIt) {
  const auto sampler = make(mixed_space());
  for (std::uint64_t id = 0; id < 40; ++id) {
    const auto point = sampler->ask(TrialId{id});
    ASSERT_TRUE(point);
    sampler->tell(TrialId{id}, Outcome::failed());
  }
}

TEST_P(SamplerConformance, EqualAndExtremeValuesDoNotStopIt) {
  const auto sampler = make(mixed_space());
  for (std::uint64_t id = 0; id < 60; ++id) {
    const auto point = sampler->ask(TrialId{id});
    ASSERT_TRUE(point);
    const double values[] = {1, 1, 1e300, -1e300, 1e-300};
    sampler->tell(TrialId{id}, Outcome::complete(id < 20 ? 1 : values[id % 5]));
  }
}

TEST_P(SamplerConformance, RefusesMisuseAndStaysUsable) {
  const auto sampler = make(mixed_space());
  ASSERT_TRUE(sampler->ask(TrialId{7}));
  EXPECT_THROW(sampler->ask(TrialId{7}), Error);
  EXPECT_THROW(sampler->tell(TrialId{8}, Outcome::complete(1.0)), Error);
  EXPECT_THROW(sampler->tell(TrialId{7}, Outcome::complete({1.0, 2.0})), Error);
  EXPECT_THROW(sampler->report(TrialId{9}, 1, std::vector{1.0}), Error);
  EXPECT_THROW(sampler->recall(TrialId{10}, {1.0}), Error);
  EXPECT_THROW(sampler->add({1.0}, Outcome::complete(1.0)), Error);
  sampler->tell(TrialId{7}, Outcome::complete(1.0));
  EXPECT_THROW(sampler->tell(TrialId{7}, Outcome::complete(1.0)), Error);
  EXPECT_TRUE(sampler->ask(TrialId{11}));
  SamplerOptions options = options_for(GetParam());
  options.settings["no such setting"] = 1;
  EXPECT_THROW(make_sampler(GetParam(), mixed_space(), options), Error);
}

TEST_P(SamplerConformance, StartingPointsAreTriedFirst) {
  SamplerOptions options = options_for(GetParam());
  options.points_to_evaluate = {Value{{"e", "z"}, {"h", 3}}, Value{{"a", 0.25}, {"h", 1}}};
  const auto sampler = make_sampler(GetParam(), mixed_space(), options);
  const std::uint64_t times = GetParam() == "repeater" ? 2 : 1;
  for (std::uint64_t id = 0; id < times; ++id) EXPECT_EQ((*sampler->ask(TrialId{id}))[4], 2);
  EXPECT_EQ((*sampler->ask(TrialId{times}))[0], 0.25);
}

std::vector<std::string> all_samplers() {
  std::vector<std::string> names;
  for (const SamplerInfo& info : samplers()) names.emplace_back(info.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, SamplerConformance, testing::ValuesIn(all_samplers()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace kolo::search
