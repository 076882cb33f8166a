#include "tune/output/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"

namespace kolo::tune {
namespace {

using testing::HasSubstr;

StudyView study() {
  StudyView view;
  view.name = "first";
  view.objectives = {{"loss", search::Direction::minimize}};
  view.elapsed = 75;
  view.counts[static_cast<int>(TrialStatus::running)] = 2;
  view.counts[static_cast<int>(TrialStatus::terminated)] = 9;
  view.counts[static_cast<int>(TrialStatus::error)] = 1;
  view.created = 12;
  view.total = 40;
  view.reports = 77;
  view.resources = "2/2 CPUs";
  view.scheduler = "asha: bracket 0: 4 at 9, 9 at 3";
  TrialInfo trial;
  trial.number = 7;
  trial.id = "abcde_00007";
  trial.status = TrialStatus::running;
  trial.config = Value{{"lr", 0.01}, {"model", {{"units", 64}}}};
  trial.last_result = Value{{"loss", 0.25}};
  trial.iteration = 5;
  trial.seconds = 1.5;
  view.best = trial;
  view.shown = {trial, trial};
  return view;
}

TEST(Progress, ALineSaysWhatMatters) {
  EXPECT_EQ(draw_line(study()),
            "first: 10/40 trials, 2 running, 1 failed, 0:01:15, about 0:03:45 left, "
            "best loss 0.25 (trial 7, lr=0.01, model/units=64)");
}

TEST(Progress, TheTableHasBarBestRungsAndTrials) {
  const std::string text = draw_table(study(), 100);
  EXPECT_THAT(text, HasSubstr("[#######-----------------------]  25 %"));
  EXPECT_THAT(text, HasSubstr("2/2 CPUs, 77 reports"));
  EXPECT_THAT(text, HasSubstr("best loss 0.25"));
  EXPECT_THAT(text, HasSubstr("4 at 9"));
  EXPECT_THAT(text, HasSubstr("abcde_00007  RUNNING  5     1.5       0.25  0.01  64"));
  EXPECT_THAT(text, HasSubstr("… 10 more"));
  for (std::size_t start = 0, end = 0; end != std::string::npos; start = end + 1) {
    end = draw_table(study(), 30).find('\n', start);
    if (end != std::string::npos && start > 0) {
      EXPECT_LE(end - start, 90U);  // trials and the best are cut at the width
    }
  }
}

TEST(Progress, EventsAreJsonLines) {
  TempDir scratch;
  std::FILE* file = std::fopen((scratch.path() / "events").c_str(), "w");
  {
    auto events = make_json_events(file);
    const auto view = study();
    events->on_trial_start(*view.best);
    events->on_trial_result(*view.best, Value{{"loss", 0.25}, {"config", {{"lr", 0.01}}}});
    events->on_trial_complete(*view.best);
    events->on_message("the study waits");
    events->on_end([&](std::size_t) { return view; });
  }
  std::fclose(file);
  std::istringstream lines(read_file(scratch.path() / "events"));
  std::vector<std::string> kinds;
  for (std::string line; std::getline(lines, line);)
    kinds.push_back(parse_json(line, "event")["event"]);
  EXPECT_THAT(kinds, testing::ElementsAre("trial_start", "trial_result", "trial_complete",
                                          "message", "study"));
}

}  // namespace
}  // namespace kolo::tune
