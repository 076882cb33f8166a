// What every scheduler keeps to, run over the whole table.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kolo/error.h"
#include "kolo/random.h"
#include "kolo/search.h"

namespace kolo::search {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Value policy_to_replay() {
  Value::List policy;
  for (double time : {10.0, 30.0}) {
    Value::List line;
    line.emplace_back(1);
    line.emplace_back(time < 20 ? 2 : 1);
    line.emplace_back(time);
    line.emplace_back(time);
    line.push_back(Value{{"lr", 0.1}});
    line.push_back(Value{{"lr", 0.1 / time}});
    policy.emplace_back(std::move(line));
  }
  return Value(std::move(policy));
}

SchedulerOptions options_for(std::string_view name, std::size_t objectives = 1) {
  SchedulerOptions options;
  options.seed = 11;
  options.directions.assign(objectives, Direction::minimize);
  options.directions[0] = Direction::maximize;
  options.mutations =
      Space::Builder().add("lr", loguniform(1e-4, 1)).add("units", integer(1, 64)).build();
  if (name.starts_with("pb")) options.settings["perturbation_interval"] = 5;
  if (name == "pbt_replay") options.settings = {{"policy", policy_to_replay()}};
  if (name == "median_stopping_rule") options.settings["grace_period"] = 3;
  return options;
}

/// One call, so that a history can be repeated.
struct Event {
  enum class Kind { add, result, complete, fail, stalled } kind;
  std::uint64_t trial = 0;
  double time = 0;
  std::vector<double> values{};
  bool others_wait = false;
  Value config{};
};

/// What came back, as text: everything that a caller can see.
std::string text_of(const Decision& decision) {
  std::string text = std::string(to_string(decision.action)) + " " + decision.reason.to_string();
  if (decision.source)
    text += " from " + std::to_string(static_cast<std::uint64_t>(*decision.source));
  if (decision.config) text += " " + decision.config->to_string();
  return text + (decision.save ? " save" : "");
}

class Study {
 public:
  Study(std::string_view name, std::size_t objectives)
      : scheduler_(make_scheduler(name, options_for(name, objectives))) {}

  std::string play(const Event& event) {
    TrialId id{event.trial};
    std::string text;
    switch (event.kind) {
      case Event::Kind::add: scheduler_->add(id, event.config); break;
      case Event::Kind::result:
        text = text_of(scheduler_->result(
            id, {.time = event.time, .values = event.values, .others_wait = event.others_wait}));
        break;
      case Event::Kind::complete: scheduler_->complete(id); break;
      case Event::Kind::fail: scheduler_->fail(id); break;
      case Event::Kind::stalled: scheduler_->stalled(); break;
    }
    for (const auto& [trial, decision] : scheduler_->take_decisions())
      text += " / " + std::to_string(static_cast<std::uint64_t>(trial)) + " " + text_of(decision);
    return text;
  }

  Scheduler& scheduler() { return *scheduler_; }

 private:
  std::unique_ptr<Scheduler> scheduler_;
};

/// A random but possible course of events with up to `trials` trials.
std::vector<Event> make_history(std::string_view name, std::size_t objectives, std::uint64_t seed) {
  Random random(seed);
  Study study(name, objectives);
  std::size_t trials = name == "pbt_replay" ? 1 : 40;
  std::vector<double> times;
  std::vector<bool> ended;
  std::vector<Event> history;
  while (history.size() < 500) {
    Event event{};
    if (times.size() < trials && (times.empty() || random.below(8) == 0)) {
      event.kind = Event::Kind::add;
      event.trial = 1 + times.size();
      event.config = Value{{"lr", random.uniform(0.001, 1)}, {"units", 1 + random.below(64)}};
      times.push_back(0);
      ended.push_back(false);
    } else {
      std::size_t index = random.below(times.size());
      if (ended[index]) {
        if (std::all_of(ended.begin(), ended.end(), [](bool e) { return e; })) break;
        continue;
      }
      event.trial = 1 + index;
      auto dice = random.below(200);
      if (dice == 0) {
        event.kind = Event::Kind::fail;
      } else if (dice == 1) {
        event.kind = Event::Kind::complete;
      } else if (dice == 2) {
        event.kind = Event::Kind::stalled;
      } else {
        event.kind = Event::Kind::result;
        event.time = times[index] += 1;
        event.others_wait = random.below(10) == 0;
        for (std::size_t k = 0; k < objectives; ++k)
          event.values.push_back(random.below(50) == 0 ? kNan : random.normal());
      }
      if (event.kind == Event::Kind::fail || event.kind == Event::Kind::complete)
        ended[index] = true;
    }
    history.push_back(event);
    study.play(event);
  }
  return history;
}

class SchedulerConformance : public testing::TestWithParam<std::string> {
 protected:
  /// Not all know several objectives; those that do not say so.
  [[nodiscard]] bool supports(std::size_t objectives) const {
    try {
      (void)make_scheduler(GetParam(), options_for(GetParam(), objectives));
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
      return false;
    }
  }
  [[nodiscard]] std::unique_ptr<Scheduler> make() const {
    return make_scheduler(GetParam(), options_for(GetParam()));
  }
};

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::internal;
}

TEST_P(SchedulerConformance, ReplaysFromAnyCut) {
  for (std::size_t objectives : {1, 2}) {
    if (!supports(objectives)) continue;
    auto history = make_history(GetParam(), objectives, 5);
    std::vector<std::string> original;
    Study first(GetParam(), objectives);
    for (const auto& event : history) original.push_back(first.play(event));

    Random random(6);
    for (int attempt = 0; attempt < 100; ++attempt) {
      std::size_t cut = random.below(history.size());
      Study second(GetParam(), objectives);
      // Up to the cut nobody takes decisions: they were acted on before the restart.
      for (std::size_t i = 0; i < cut; ++i) second.play(history[i]);
      second.scheduler().take_decisions();
      for (std::size_t i = cut; i < std::min(history.size(), cut + 60); ++i)
        ASSERT_EQ(second.play(history[i]), original[i]) << "event " << i << " after cut " << cut;
    }
  }
}

TEST_P(SchedulerConformance, DecidesEveryCourseOfEvents) {
  for (std::uint64_t seed = 20; seed < 30; ++seed)
    EXPECT_FALSE(make_history(GetParam(), 1, seed).empty());
}

TEST_P(SchedulerConformance, NamesMisuse) {
  auto scheduler = make();
  EXPECT_EQ(code_of([&] { (void)scheduler->result(TrialId{9}, {.time = 1, .values = {1}}); }),
            ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { scheduler->complete(TrialId{9}); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { scheduler->fail(TrialId{9}); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { (void)scheduler->next(std::vector{TrialId{9}}); }), ErrorCode::not_found);
  scheduler->add(TrialId{1});
  EXPECT_EQ(code_of([&] { scheduler->add(TrialId{1}); }), ErrorCode::already_exists);
  EXPECT_EQ(code_of([&] { (void)scheduler->result(TrialId{1}, {.time = 1, .values = {}}); }),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] {
              (void)scheduler->result(TrialId{1}, {.time = 1, .values = {1, 2}});
            }),
            ErrorCode::invalid_argument);
  for (double time : {kNan, kInfinity, -kInfinity})
    EXPECT_EQ(code_of([&] { (void)scheduler->result(TrialId{1}, {.time = time, .values = {1}}); }),
              ErrorCode::invalid_argument);
  scheduler->complete(TrialId{1});
  EXPECT_EQ(code_of([&] { (void)scheduler->result(TrialId{1}, {.time = 1, .values = {1}}); }),
            ErrorCode::failed_precondition);
  EXPECT_EQ(code_of([&] { scheduler->complete(TrialId{1}); }), ErrorCode::failed_precondition);
  EXPECT_EQ(code_of([&] { scheduler->fail(TrialId{1}); }), ErrorCode::failed_precondition);
}

TEST_P(SchedulerConformance, RefusesWhatItDoesNotKnow) {
  auto options = options_for(GetParam());
  options.settings["no_such_setting"] = 1;
  EXPECT_EQ(code_of([&] { (void)make_scheduler(GetParam(), options); }),
            ErrorCode::invalid_argument);
  options = options_for(GetParam());
  options.directions.clear();
  EXPECT_EQ(code_of([&] { (void)make_scheduler(GetParam(), options); }),
            ErrorCode::invalid_argument);
}

TEST_P(SchedulerConformance, SurvivesValuesThatAreNotFinite) {
  auto scheduler = make();
  std::uint64_t trials = GetParam() == "pbt_replay" ? 1 : 12;
  for (std::uint64_t i = 0; i < trials; ++i) scheduler->add(TrialId{i}, Value{{"lr", 0.1}});
  double values[] = {kNan, kInfinity, -kInfinity, 1, 1e308, -1e308};
  for (int time = 1; time <= 120; ++time)
    for (std::uint64_t i = 0; i < trials; ++i)
      (void)scheduler->result(
          TrialId{i}, {.time = static_cast<double>(time),
                       .values = {values[(i + static_cast<std::uint64_t>(time) / 40) % 6]}});
  scheduler->stalled();
  (void)scheduler->take_decisions();
  EXPECT_FALSE(scheduler->status().empty());
}

TEST_P(SchedulerConformance, StopsForGood) {
  auto history = make_history(GetParam(), 1, 7);
  Study study(GetParam(), 1);
  std::map<std::uint64_t, bool> stopped;
  for (const auto& event : history) {
    if (event.kind != Event::Kind::result) {
      study.play(event);
      continue;
    }
    auto decision = study.scheduler().result(TrialId{event.trial},
                                             {.time = event.time, .values = event.values});
    EXPECT_TRUE(!stopped[event.trial] || decision.action == Action::stop);
    if (decision.action == Action::stop) {
      stopped[event.trial] = true;
      EXPECT_FALSE(decision.reason.rule.empty());
      EXPECT_EQ(study.scheduler().next(std::vector{TrialId{event.trial}}), std::nullopt);
    }
    for (const auto& [trial, later] : study.scheduler().take_decisions())
      if (later.action == Action::stop) stopped[static_cast<std::uint64_t>(trial)] = true;
  }
}

TEST_P(SchedulerConformance, ChoosesOneOfThoseThatWait) {
  auto scheduler = make();
  EXPECT_EQ(scheduler->next({}), std::nullopt);
  std::vector<TrialId> waiting;
  for (std::uint64_t i = 0; i < (GetParam() == "pbt_replay" ? 1 : 5); ++i) {
    waiting.push_back(TrialId{i});
    scheduler->add(waiting.back(), Value{{"lr", 0.1}});
  }
  auto chosen = scheduler->next(waiting);
  ASSERT_TRUE(chosen);  // new trials may run
  EXPECT_NE(std::find(waiting.begin(), waiting.end(), *chosen), waiting.end());
  scheduler->complete(*chosen);
  EXPECT_EQ(scheduler->next(std::vector{*chosen}), std::nullopt);
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const auto& info : schedulers()) names.emplace_back(info.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, SchedulerConformance, testing::ValuesIn(all_names()),
                         [](const auto& info) { return info.param; });

TEST(Schedulers, TunesNamesAreUnderstood) {
  EXPECT_EQ(make_scheduler("async_hyperband")->name(), "asha");
  EXPECT_EQ(make_scheduler("medianstopping")->name(), "median_stopping_rule");
  EXPECT_EQ(code_of([] { (void)make_scheduler("ashaa"); }), ErrorCode::not_found);
}

}  // namespace
}  // namespace kolo::search
