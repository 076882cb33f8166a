#include "store/study_store.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/errors.h"
#include "conformance/store/database_fixture.h"

namespace kolo::test {
namespace {

using namespace store;
using namespace std::chrono_literals;

class StudyStoreTest : public DatabaseTest {
 protected:
  void SetUp() override {
    DatabaseTest::SetUp();
    if (IsSkipped()) return;
    store_ = std::make_unique<StudyStore>(*database_);
    study_ = store_->create({.name = "first", .directory = "/d", .spec = "{}", .created = 10});
  }

  static StudyBatch batch(std::int64_t from, std::int64_t to) {
    StudyBatch batch;
    batch.from_seq = from;
    batch.to_seq = to;
    batch.now = 20;
    return batch;
  }
  static ErrorCode refusal(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  }

  std::unique_ptr<StudyStore> store_;
  StudyId study_{};
};
INSTANTIATE_TEST_SUITE_P(All, StudyStoreTest, testing::ValuesIn(all_stores()),
                         [](const auto& info) { return info.param; });

TEST_P(StudyStoreTest, KnowsStudiesByName) {
  EXPECT_EQ(store_->at("first").directory, "/d");
  EXPECT_FALSE(store_->find("second"));
  EXPECT_EQ(refusal([&] { store_->create({.name = "first"}); }), ErrorCode::already_exists);
  store_->create({.name = "second"});
  EXPECT_EQ(store_->studies().size(), 2U);
  try {
    static_cast<void>(store_->at("frist"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), testing::HasSubstr("first"));
  }
}

TEST_P(StudyStoreTest, GivesBackABatch) {
  store_->claim(study_, 11);
  auto first = batch(0, 3);
  TrialRecord trial;
  trial.number = 0;
  trial.point = "0.25,nan";
  trial.config = R"({"lr":0.25})";
  trial.asked_seq = 1;
  trial.created = 12.5;
  first.trials = {trial};
  first.reports = {{2, 0, 1, 13, 0.5, R"({"loss":1})", 0, "", true}};
  first.checkpoints = {{0, 2, 1, "/d/c1", 13}};
  first.events = {{3, 13, std::nullopt, "started", "here"}};
  store_->write(study_, first);

  trial.status = TrialStatus::terminated;
  trial.ended_seq = 5;
  trial.ended = 15;
  trial.why = "stopped";
  auto second = batch(3, 5);
  second.trials = {trial};
  second.reports = {{4, 0, 2, 14, 1.5, R"({"loss":0.5})", 1, "rung", false}};
  second.removed_checkpoints = {{"/d/c1", 2}, {"/d/c2", 2}};  // the second is named again
  second.checkpoints = {{0, 4, 2, "/d/c2", 14}};
  second.elapsed = 4;
  store_->write(study_, second);

  const auto trials = store_->trials(study_);
  ASSERT_EQ(trials.size(), 1U);
  EXPECT_EQ(trials[0].point, "0.25,nan");
  EXPECT_EQ(trials[0].status, TrialStatus::terminated);
  EXPECT_EQ(trials[0].ended_seq, 5);
  EXPECT_EQ(trials[0].created, 12.5);
  EXPECT_FALSE(trials[0].started);
  const auto reports = store_->reports_of(study_, 0);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_TRUE(reports[0].others_waited);
  EXPECT_EQ(reports[1].reason, "rung");
  ASSERT_EQ(store_->last_reports(study_).size(), 1U);
  EXPECT_EQ(store_->last_reports(study_)[0].seq, 4);
  EXPECT_EQ(store_->reports_after(study_, {}, 0).size(), 2U);
  ASSERT_EQ(store_->reports_after(study_, {0, 1}, 2).size(), 1U);
  EXPECT_EQ(store_->reports_after(study_, {0, 1}, 2)[0].reason, "rung");
  EXPECT_TRUE(store_->reports_after(study_, {1, 9}, 0).empty());
  EXPECT_EQ(store_->ended_before(study_, 5), 0);
  EXPECT_EQ(store_->ended_before(study_, 6), 1);
  ASSERT_EQ(store_->checkpoints(study_).size(), 1U);
  EXPECT_EQ(store_->checkpoints(study_)[0].path, "/d/c2");
  EXPECT_EQ(store_->events(study_)[0].detail, "here");
  EXPECT_EQ(store_->at("first").seq, 5);
  EXPECT_EQ(store_->at("first").elapsed, 4);
}

TEST_P(StudyStoreTest, AStatusThatNobodyKnowsIsCorruption) {
  store_->claim(study_, 11);
  auto some = batch(0, 1);
  some.trials.resize(2);
  some.trials[1].number = 1;
  store_->write(study_, some);
  for (const std::int64_t status : {std::int64_t{5}, std::int64_t{-1}, std::int64_t{1} << 40}) {
    database_->prepare("UPDATE trials SET status = $1 WHERE number = 1").bind(1, status).run();
    EXPECT_EQ(refusal([&] { (void)store_->trials(study_); }), ErrorCode::corruption);
    EXPECT_EQ(store_->trials(study_, {0, 1}).size(), 1U);
  }
}

TEST_P(StudyStoreTest, ReportsComeInTheOrderOfTheJournal) {
  store_->claim(study_, 11);
  auto one = batch(0, 100);
  for (std::int64_t seq = 100; seq >= 1; --seq) {
    ReportRecord report;
    report.seq = seq;
    report.trial = seq % 7;
    one.reports.push_back(report);
  }
  store_->write(study_, one);
  std::int64_t last = 0;
  store_->each_report(study_, [&](ReportRecord& report) { EXPECT_EQ(report.seq, ++last); });
  EXPECT_EQ(last, 100);
}

TEST_P(StudyStoreTest, ABatchMayBeRepeatedWhenItsAnswerWasLost) {
  store_->claim(study_, 11);
  auto one = batch(0, 1);
  one.events = {{1, 13, 7, "kind", "detail"}};
  store_->write(study_, one);
  store_->write(study_, one);
  EXPECT_EQ(store_->events(study_).size(), 1U);
  EXPECT_EQ(refusal([&] { store_->write(study_, batch(7, 8)); }), ErrorCode::failed_precondition);
}

TEST_P(StudyStoreTest, ASecondControllerIsToldSo) {
  store_->claim(study_, 11);
  auto connection = connect();
  StudyStore other(*connection);
  try {
    other.claim(study_, 12);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::failed_precondition);
    EXPECT_THAT(error.what(), testing::HasSubstr(std::to_string(::getpid())));
  }
  EXPECT_EQ(refusal([&] { other.write(study_, batch(0, 1)); }), ErrorCode::failed_precondition);
  store_->release(study_);
  other.claim(study_, 13);
  EXPECT_EQ(refusal([&] { store_->write(study_, batch(0, 1)); }), ErrorCode::failed_precondition);
  other.write(study_, batch(0, 1));
}

TEST_P(StudyStoreTest, AControllerThatIsGoneIsReplacedAtOnce) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto connection = connect();
    StudyStore(*connection).claim(study_, 11);
    ::_exit(0);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_FALSE(store_->holder(study_, 12));
  store_->claim(study_, 12);
}

TEST_P(StudyStoreTest, AControllerOnAnotherHostIsGivenTime) {
  database_->execute(
      "UPDATE studies SET owner = 'x', owner_host = 'elsewhere boot', owner_pid = 1, "
      "owner_started = 1, heard = 100");
  EXPECT_EQ(refusal([&] { store_->claim(study_, 100 + kLeaseSeconds - 1); }),
            ErrorCode::failed_precondition);
  store_->claim(study_, 100 + kLeaseSeconds + 1);
}

TEST_P(StudyStoreTest, RequestsReachTheController) {
  auto connection = connect();
  auto watch = store_->watch_requests();
  StudyStore(*connection).request(study_, "stop", 3);
  StudyStore(*connection).request(study_, "stop", std::nullopt);
  EXPECT_TRUE(watch->wait(Deadline::after(10s)));
  auto requests = store_->requests(study_);
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].trial, 3);
  EXPECT_FALSE(requests[1].trial);
  store_->claim(study_, 11);
  auto one = batch(0, 1);
  one.done_requests = {requests[0].number};
  store_->write(study_, one);
  EXPECT_EQ(store_->requests(study_).size(), 1U);
}

TEST_P(StudyStoreTest, StudiesAreCopiedRenamedAndRemoved) {
  store_->claim(study_, 11);
  auto all = batch(0, 4);
  TrialRecord trial;
  trial.point = "0.25";
  trial.config = "{}";
  trial.directory = "/d/größe";
  trial.asked_seq = 1;
  all.trials = {trial};
  all.reports = {{2, 0, 1, 13, 0.5, R"({"loss":1})", 0, "", false}};
  all.checkpoints = {{0, 3, 1, "/d/größe/c1", 13}, {0, 3, 2, "/elsewhere/c2", 13}};
  all.events = {{4, 13, std::nullopt, "started", "here"}};
  store_->write(study_, all);

  const StudyId copy = store_->copy(study_, "second", "/e");
  EXPECT_EQ(store_->at("second").first_name, "first");
  EXPECT_EQ(store_->at("second").seq, 4);
  EXPECT_FALSE(store_->holder(copy, 12));
  EXPECT_EQ(store_->trials(copy)[0].directory, "/e/größe");
  EXPECT_EQ(store_->reports_of(copy, 0).size(), 1U);
  EXPECT_EQ(store_->checkpoints(copy)[0].path, "/e/größe/c1");
  EXPECT_EQ(store_->checkpoints(copy)[1].path, "/elsewhere/c2");
  EXPECT_EQ(store_->events(copy).size(), 1U);
  EXPECT_EQ(store_->trials(study_)[0].directory, "/d/größe");

  EXPECT_EQ(refusal([&] { store_->rename(study_, "second", "/e"); }), ErrorCode::already_exists);
  EXPECT_EQ(store_->checkpoints(study_)[0].path, "/d/größe/c1");
  store_->rename(study_, "third", "/f");
  EXPECT_FALSE(store_->find("first"));
  EXPECT_EQ(store_->at("third").first_name, "first");
  EXPECT_EQ(store_->trials(study_)[0].directory, "/f/größe");
  EXPECT_EQ(store_->checkpoints(study_)[0].path, "/f/größe/c1");

  store_->remove(study_);
  EXPECT_FALSE(store_->find("third"));
  EXPECT_EQ(store_->trial_count(study_), 0);
  EXPECT_TRUE(store_->checkpoints(study_).empty());
  EXPECT_EQ(store_->trial_count(copy), 1);
}

TEST_P(StudyStoreTest, AClaimThatCouldNotBeReleasedDoesNotHinderItsOwnProcess) {
  {
    const auto failing = connect(20ms);
    StudyStore first(*failing);
    first.claim(study_, 11);
    const auto busy = connect();
    busy->begin(Locking::all);
    busy->prepare("UPDATE studies SET heard = 12").run();
    first.release(study_);
    busy->rollback();
  }
  EXPECT_NO_THROW(store_->claim(study_, 13));
}

}  // namespace
}  // namespace kolo::test
