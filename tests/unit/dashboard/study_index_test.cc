// The index of a study, beside what a whole reading of the study says.
#include "dashboard/study_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "base/errors.h"
#include "base/files.h"
#include "tune/output/studies_table.h"
#include "tune/study/study_reader.h"

namespace kolo::dashboard {
namespace {

using namespace std::chrono_literals;
using store::TrialStatus;
using testing::ElementsAre;

class Index : public testing::Test {
 protected:
  Index() {
    database_ = store::open_database((scratch_.path() / "kolo.db").string());
    store_ = std::make_unique<store::StudyStore>(*database_);
    tune::StudySpec spec;
    spec.objectives = {{"loss", search::Direction::minimize}};
    store::StudyRecord study;
    study.name = study.first_name = "one";
    study.spec = spec.to_json();
    study.created = 1000;
    id_ = store_->create(study);
    store_->claim(id_, store_->lease_date());
  }

  store::TrialRecord& trial(std::int64_t number, TrialStatus status) {
    auto& record = batch_.trials.emplace_back();
    record.number = number;
    record.status = status;
    record.point = "0";
    record.config = fmt::format(R"({{"lr": {}, "kind": "{}"}})", 1.0 / double(number + 1),
                                number % 2 == 0 ? "even" : "odd");
    record.asked_seq = ++seq_;
    record.started = 1000 + double(number);
    if (status == TrialStatus::terminated || status == TrialStatus::error) {
      record.ended_seq = ++seq_;
      record.ended = *record.started + 1;
    }
    return record;
  }
  void report(std::int64_t number, std::int64_t iteration, const std::string& metrics) {
    auto& record = batch_.reports.emplace_back();
    record.seq = ++seq_;
    record.trial = number;
    record.iteration = iteration;
    record.time = 2000;
    record.metrics = metrics;
  }
  void write() {
    batch_.from_seq = written_;
    batch_.to_seq = written_ = ++seq_;
    batch_.now = store_->lease_date();
    store_->write(id_, batch_);
    batch_ = {};
  }
  static std::vector<std::int64_t> numbers(const StudyIndex::Answer& answer) {
    std::vector<std::int64_t> all;
    for (const auto& row : answer.rows.rows) all.push_back(row[0].as_integer());
    return all;
  }

  TempDir scratch_{"kolo-index"};
  std::unique_ptr<store::Database> database_;
  std::unique_ptr<store::StudyStore> store_;
  store::StudyId id_{};
  store::StudyBatch batch_;
  std::int64_t seq_ = 0, written_ = 0;
};

TEST_F(Index, FollowsTrialsThatRunAndThoseThatBegin) {
  trial(0, TrialStatus::running);
  trial(1, TrialStatus::terminated);
  report(0, 1, R"({"loss": 5})");
  report(1, 1, R"({"loss": 3})");
  write();
  StudyIndex index(store_->at("one"));
  ASSERT_TRUE(index.follow(*store_, Deadline::after(20s)));
  EXPECT_EQ(index.size(), 2U);
  EXPECT_EQ(index.counts().done, 1);
  EXPECT_EQ(index.counts().best.as_number(), 3);
  EXPECT_EQ(index.by_status().at("RUNNING"), 1U);

  report(0, 2, R"({"loss": 1})");
  write();
  ASSERT_TRUE(index.follow(*store_, Deadline::after(20s)));
  EXPECT_EQ(index.counts().best.as_number(), 1);
  EXPECT_EQ(index.iteration(0), 2);

  trial(0, TrialStatus::error).error = "broken\nin two lines";
  trial(2, TrialStatus::pending);
  write();
  ASSERT_TRUE(index.follow(*store_, Deadline::after(20s)));
  EXPECT_EQ(index.counts().failed, 1);
  EXPECT_EQ(index.counts().trials, 3U);
  EXPECT_EQ(index.facts(0).error, "broken\nin two lines");
  EXPECT_EQ(index.facts(0).metrics.at("loss").as_number(), 1);
  EXPECT_EQ(index.facts(1).config.at("kind").as_string(), "odd");
}

TEST_F(Index, AMetricOfAnEarlierReportIsNotForgotten) {
  trial(0, TrialStatus::terminated);
  report(0, 1, R"({"loss": 5, "accuracy": 0.5})");
  report(0, 2, R"({"seconds": 1})");
  write();
  StudyIndex index(store_->at("one"));
  ASSERT_TRUE(index.follow(*store_, Deadline::after(20s)));
  EXPECT_EQ(index.facts(0).metrics.at("loss").as_number(), 5);
  EXPECT_EQ(index.facts(0).metrics.at("accuracy").as_number(), 0.5);
  EXPECT_EQ(index.iteration(0), 2);
}

TEST_F(Index, FiltersSortsAndCuts) {
  for (int n = 0; n < 50; ++n) {
    trial(n, TrialStatus::terminated);
    if (n != 7)
      report(n, 1, fmt::format(R"({{"loss": {}}})", n == 9 ? "\"NaN\"" : std::to_string(n)));
  }
  write();
  StudyIndex index(store_->at("one"));
  ASSERT_TRUE(index.follow(*store_, Deadline::after(20s)));
  EXPECT_EQ(index.trials({.study = "one", .filter = "loss < 10 and kind == odd"}).matching, 3U);
  EXPECT_THAT(
      numbers(index.trials({.study = "one", .sort = "loss", .descending = true, .limit = 3})),
      ElementsAre(49, 48, 47));
  EXPECT_THAT(numbers(index.trials({.study = "one", .sort = "lr", .offset = 48})),
              ElementsAre(1, 0));
  // Those without a value come last, whichever way it is sorted.
  EXPECT_THAT(numbers(index.trials({.study = "one", .sort = "loss", .offset = 48})),
              ElementsAre(7, 9));
  EXPECT_THAT(numbers(index.trials(
                  {.study = "one", .filter = "trial < 3", .sort = "trial", .descending = true})),
              ElementsAre(2, 1, 0));
  EXPECT_THROW((void)index.trials({.study = "one", .filter = "los < 1"}), Error);
}

TEST_F(Index, ChoosesAmongThoseForWhichAFilterHolds) {
  for (int n = 0; n < 50; ++n) {
    trial(n, TrialStatus::terminated);
    report(n, 1, fmt::format(R"({{"loss": {}}})", n));
  }
  write();
  StudyIndex index(store_->at("one"));
  ASSERT_TRUE(index.follow(*store_, Deadline::after(20s)));
  EXPECT_EQ(index.matching("").size(), 50U);
  const auto high = index.matching("loss >= 40");
  EXPECT_THAT(high, ElementsAre(40, 41, 42, 43, 44, 45, 46, 47, 48, 49));
  EXPECT_EQ(index.chosen(high, 500).size(), 10U);
  const auto chosen = index.chosen(high, 4);
  ASSERT_EQ(chosen.size(), 4U);
  EXPECT_EQ(chosen[0], 40);  // half of them are the best of those for which it holds
  EXPECT_EQ(chosen[1], 41);
  EXPECT_TRUE(index.chosen(index.matching("loss < 0"), 4).empty());
  EXPECT_THROW((void)index.matching("los < 1"), Error);
}

TEST_F(Index, ReadsALargeStudyInStepsAndSaysTheSameAsAWholeReading) {
  constexpr int kTrials = 3500;
  for (int n = 0; n < kTrials; ++n) {
    trial(n, n % 100 == 99 ? TrialStatus::error : TrialStatus::terminated);
    report(n, 1, fmt::format(R"({{"loss": {}}})", (n * 37) % 1000));
  }
  write();
  StudyIndex index(store_->at("one"));
  int steps = 1;
  for (; !index.follow(*store_, Deadline::after(0ns)); ++steps) EXPECT_FALSE(index.complete());
  EXPECT_GT(steps, 2);
  const auto whole = tune::studies_table(*store_).rows.at(0);
  const auto counts = index.counts();
  EXPECT_EQ(tune::studies_row(*store_, store_->at("one"), counts), whole);
  const auto all = index.matching("");
  const auto chosen = index.chosen(all, 500);
  EXPECT_EQ(chosen.size(), 500U);
  EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
  EXPECT_TRUE(std::binary_search(chosen.begin(), chosen.end(), std::int64_t{0}));  // the best
  EXPECT_EQ(index.ended(100).size(), 100U);
}

TEST_F(Index, ChoosesTheSameTrialsWhenOneGetsBetter) {
  constexpr int kTrials = 1000;
  for (int n = 0; n < kTrials; ++n) {
    trial(n, TrialStatus::running);
    report(n, 1, fmt::format(R"({{"loss": {}}})", 10 + (n * 37) % 1000));
  }
  write();
  StudyIndex index(store_->at("one"));
  ASSERT_TRUE(index.follow(*store_, Deadline::after(20s)));
  const auto before = index.chosen(index.matching(""), 200);
  report(517, 2, R"({"loss": 1})");
  write();
  ASSERT_TRUE(index.follow(*store_, Deadline::after(20s)));
  const auto after = index.chosen(index.matching(""), 200);
  EXPECT_EQ(after.size(), 200U);
  EXPECT_TRUE(std::binary_search(after.begin(), after.end(), std::int64_t{517}));
  std::vector<std::int64_t> new_ones;
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                      std::back_inserter(new_ones));
  // It, and perhaps the one that it has pushed out of the best.
  EXPECT_LE(new_ones.size(), 2U) << testing::PrintToString(new_ones);
}

TEST_F(Index, PausesCutRunsIntoPieces) {
  trial(0, TrialStatus::terminated).place = "1";
  const auto event = [&](double time, const char* kind, const char* detail) {
    auto& record = batch_.events.emplace_back();
    record.seq = ++seq_;
    record.time = time;
    record.trial = 0;
    record.kind = kind;
    record.detail = detail;
  };
  event(1000.25, "pause", "");
  event(1000.5, "resume", R"({"slot_before": "0"})");
  write();
  StudyIndex index(store_->at("one"));
  ASSERT_TRUE(index.follow(*store_, Deadline::after(20s)));
  EXPECT_EQ(index.facts(0).runs, Json::parse(R"([[1000.0, 1000.25, "0"], [1000.5, 1001.0, "1"]])"));
}

}  // namespace
}  // namespace kolo::dashboard
