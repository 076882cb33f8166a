// The phases of a trial, and the books that Trials keeps about them.
#include "tune/trial/trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "base/errors.h"
#include "kolo/search/space.h"
#include "tune/trial/trial_names.h"

namespace kolo::tune {
namespace {

using enum TrialPhase;
using testing::ElementsAre;

StudyTrial& add_trial(Trials& trials) {
  auto trial = std::make_unique<StudyTrial>();
  trial->record.number = trials.size();
  return trials.add(std::move(trial));
}

/// A way through the table from pending to `phase`.
std::vector<TrialPhase> way_to(TrialPhase phase) {
  std::vector<std::vector<TrialPhase>> ways{{pending}};
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (ways[i].back() == phase) return ways[i];
    for (const TrialPhase next : row_of(ways[i].back()).next) {
      if (std::find(ways[i].begin(), ways[i].end(), next) != ways[i].end()) continue;
      ways.push_back(ways[i]);
      ways.back().push_back(next);
    }
  }
  return {};
}

TEST(TrialNames, TagsHaveEverythingThatVaries) {
  using namespace search;
  const Space space(Spec{{"depth", 3},
                         {"lr", uniform(0, 1)},
                         {"net", Spec{{"half", sample_from([](const ConfigView& view) {
                                         return view.at("lr").as_number() / 2;
                                       })}}}});
  const Value config{{"depth", 3}, {"lr", 0.123456789}, {"net", Value{{"half", 0.25}}}};
  EXPECT_EQ(experiment_tag(7, config, space), "7_lr=0.12346,half=0.25");
}

TEST(TrialNames, DirectoriesAreCutBeforeTheirDate) {
  const auto space = search::Space::Builder()
                         .add("word", search::choice({std::string(200, 'w'), "é"}))
                         .add("x", search::uniform(0, 1))
                         .build();
  const auto directory = [&](const std::string& trainable, const Value& config) {
    return trial_directory(Options(), trainable, "8f3c2_00007", 7, config, *space, 0);
  };
  constexpr std::size_t kDate = 20;  // _2024-01-31_12-00-00
  const auto whole = directory("train", Value{{"word", "é"}, {"x", 0.5}});
  EXPECT_EQ(whole.substr(0, whole.size() - kDate), "train_8f3c2_00007_7_word=é,x=0.5");
  const auto cut = directory("train", Value{{"word", std::string(200, 'w')}, {"x", 0.5}});
  EXPECT_EQ(cut.size(), 150U);
  EXPECT_EQ(cut.substr(130), "_" + date_text(0));
  // A letter of two bytes at the place of the cut is left out whole.
  const auto letters = directory(std::string(129, 't') + "é", Value{{"word", "é"}, {"x", 0.5}});
  EXPECT_EQ(letters, std::string(129, 't') + "_" + date_text(0));
}

TEST(TrialNames, DirectoriesOfTheUsersOwnMustBePossible) {
  const auto space = search::Space::Builder().add("x", search::uniform(0, 1)).build();
  Options options;
  std::string name;
  options.trial_dirname_creator = [&](std::int64_t, const Value&) { return name; };
  const auto directory = [&] {
    return trial_directory(options, "train", "8f3c2_00007", 7, Value{{"x", 0.5}}, *space, 0);
  };
  name = std::string(255, 'x');
  EXPECT_EQ(directory(), name);
  for (const auto& bad : {std::string(), std::string("."), std::string(".."), std::string("a/b"),
                          std::string(256, 'x')}) {
    name = bad;
    EXPECT_THROW(static_cast<void>(directory()), Error) << bad;
  }
}

TEST(TrialPhase, TheTableHasARowForEachPhaseInOrder) {
  int place = 0;
  for (const auto& row : phase_table()) {
    EXPECT_EQ(static_cast<int>(row.phase), place++);
    EXPECT_FALSE(row.name.empty());
    EXPECT_EQ(row.next.empty(), has_ended(row.phase)) << row.name;
    EXPECT_EQ(row.status == TrialStatus::terminated || row.status == TrialStatus::error,
              has_ended(row.phase))
        << row.name;
    if (has_run(row.phase)) {  // whatever runs can fail, end well, or wait for another start
      EXPECT_TRUE(may_follow(row.phase, failed)) << row.name;
      EXPECT_TRUE(may_follow(row.phase, terminated)) << row.name;
      EXPECT_TRUE(may_follow(row.phase, pending)) << row.name;
    }
  }
  EXPECT_EQ(place, static_cast<int>(failed) + 1);
}

TEST(TrialPhase, EveryChangeOfTheTableIsDoneAndEveryOtherRefused) {
  for (const auto& from : phase_table()) {
    for (const auto& to : phase_table()) {
      Trials trials;
      auto& trial = add_trial(trials);
      const auto way = way_to(from.phase);
      ASSERT_FALSE(way.empty()) << from.name << " cannot be reached";
      for (std::size_t i = 1; i < way.size(); ++i) trials.set_status(trial, way[i]);
      const bool allowed =
          std::find(from.next.begin(), from.next.end(), to.phase) != from.next.end();
      if (!allowed) {
        EXPECT_THROW(trials.set_status(trial, to.phase), Error) << from.name << " to " << to.name;
        EXPECT_EQ(trial.phase, from.phase);
        EXPECT_EQ(trial.record.status, from.status);
        continue;
      }
      trials.set_status(trial, to.phase);
      EXPECT_EQ(trial.phase, to.phase);
      EXPECT_EQ(trial.record.status, to.status);
      EXPECT_EQ(trials.counts()[static_cast<std::size_t>(to.status)], 1);
      EXPECT_EQ(std::accumulate(trials.counts().begin(), trials.counts().end(), 0), 1);
      EXPECT_EQ(trials.live().empty(), has_ended(to.phase));
    }
  }
}

TEST(TrialPhase, EveryVerdictHasAConsequence) {
  EXPECT_EQ(consequence_of(Verdict::proceed).reply, Reply::proceed);
  for (const Verdict verdict : {Verdict::stop, Verdict::pause, Verdict::clone, Verdict::rule,
                                Verdict::done, Verdict::full}) {
    EXPECT_NE(consequence_of(verdict).fate, Fate::open);
    EXPECT_NE(consequence_of(verdict).reply, Reply::proceed);
  }
}

TEST(Trials, TellTheDatabaseWhatHasChanged) {
  Trials trials;
  auto& first = add_trial(trials);
  auto& second = add_trial(trials);
  EXPECT_EQ(trials.take_changed().size(), 2U);
  EXPECT_FALSE(trials.any_changed());
  trials.set_status(second, running);
  const auto changed = trials.take_changed();
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].number, 1);
  EXPECT_EQ(changed[0].status, TrialStatus::running);
  trials.set_status(second, stopping);  // looks the same to others
  EXPECT_FALSE(trials.any_changed());
  trials.changed(first);
  EXPECT_TRUE(trials.any_changed());
}

TEST(Trials, KnowWhoWaitsWhoRunsAndWhoHasAPlace) {
  Trials trials;
  for (int i = 0; i < 4; ++i) add_trial(trials);
  for (int i = 0; i < 3; ++i) {
    trials.set_status(trials.at(i), running);
    trials.occupy(trials.at(i), Grant{.slot = i, .devices = {}, .held = {}});
  }
  EXPECT_EQ(trials.occupied(), 3);
  EXPECT_EQ(trials.vacate(trials.at(1)).value().slot, 1);
  trials.set_status(trials.at(1), held);
  EXPECT_FALSE(trials.vacate(trials.at(1)).has_value());
  EXPECT_EQ(trials.occupied(), 2);
  EXPECT_THAT(trials.waiting(), ElementsAre(1, 3));
  trials.set_status(trials.at(2), ending);
  trials.set_status(trials.at(2), failed);
  EXPECT_EQ(trials.live_list().size(), 3U);
  EXPECT_TRUE(trials.any_run());
  EXPECT_THAT(trials.counts(), ElementsAre(1, 1, 1, 0, 1));
}

TEST(Trials, ReadARunOfAnEarlierSessionAsPending) {
  Trials trials;
  const TrialStatus stored[] = {TrialStatus::running, TrialStatus::paused, TrialStatus::error,
                                TrialStatus::pending};
  for (std::int64_t number = 0; number < 4; ++number) {
    store::TrialRecord record;
    record.number = number;
    record.status = stored[number];
    trials.load(std::move(record), "id");
  }
  EXPECT_THAT(trials.counts(), ElementsAre(2, 0, 1, 0, 1));
  EXPECT_EQ(trials.take_changed().size(), 1U);
  EXPECT_EQ(trials.live().size(), 3U);
  store::TrialRecord far;
  far.number = 9;
  EXPECT_THROW(trials.load(std::move(far), "id"), Error);
}

TEST(Trials, FollowTheBestAlsoWhenItBecomesWorse) {
  Trials trials(search::Direction::minimize);
  const auto report = [&](std::int64_t number, double value) {
    trials.at(number).values = {value};
    trials.note_values(trials.at(number));
    return trials.best() != nullptr ? trials.best()->record.number : -1;
  };
  for (int i = 0; i < 3; ++i) add_trial(trials);
  EXPECT_EQ(trials.best(), nullptr);
  EXPECT_EQ(report(0, std::nan("")), -1);
  EXPECT_EQ(report(1, 5), 1);
  EXPECT_EQ(report(2, 3), 2);
  EXPECT_EQ(report(2, 7), 1);
  EXPECT_EQ(report(1, std::nan("")), 2);
  EXPECT_EQ(report(2, std::numeric_limits<double>::infinity()), -1);
}

TEST(Trials, KeepTheBestAndTheLastOfThoseThatEnded) {
  Trials trials(search::Direction::minimize);
  const auto report = [&](StudyTrial& trial, double value) {
    trial.values = {value};
    trials.note_values(trial);
  };
  const auto end = [&](double value) {
    StudyTrial& trial = add_trial(trials);
    trials.set_status(trial, running);
    report(trial, value);
    trials.set_status(trial, ending);
    trials.set_status(trial, terminated);
    static_cast<void>(trials.take_changed());
    trials.let_go(trial.record.number);
  };
  StudyTrial& runs = add_trial(trials);
  trials.set_status(runs, running);
  report(runs, 0);
  end(5);
  end(2);
  end(2);
  for (int i = 0; i < 1000; ++i) end(7);
  EXPECT_EQ(trials.size(), 1004);
  EXPECT_LT(trials.kept().size(), 100U);
  EXPECT_EQ(trials.find(1), nullptr);
  EXPECT_EQ(trials.find(2000), nullptr);
  EXPECT_NE(trials.find(1003), nullptr);
  EXPECT_EQ(trials.best(), &runs);
  EXPECT_EQ(trials.counts()[static_cast<std::size_t>(TrialStatus::terminated)], 1003);
  report(runs, 9);  // the best becomes worse, and one of long ago takes its place
  ASSERT_NE(trials.best(), nullptr);
  EXPECT_EQ(trials.best()->record.number, 2);
  end(1);
  EXPECT_EQ(trials.best()->record.number, 1004);
  for (int i = 0; i < 1000; ++i) end(7);
  EXPECT_EQ(trials.best()->record.number, 1004);
  EXPECT_EQ(trials.best(), trials.find(1004));
  EXPECT_EQ(trials.find(2), nullptr);
}

}  // namespace
}  // namespace kolo::tune
