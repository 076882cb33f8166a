// A dashboard in front of a PostgreSQL server, which goes away and comes back.
#include <gmock/gmock.h>

#include <thread>

#include "base/files.h"
#include "conformance/store/postgres_server.h"
#include "dashboard_client.h"
#include "store/study_store.h"
#include "tune/study/study_spec.h"

namespace kolo::dashboard {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Postgres : public testing::Test, protected DashboardClient {
 protected:
  void SetUp() override {
    server_ = test::PostgresServer::start_new();
    if (!server_) GTEST_SKIP() << "PostgreSQL is not installed";
  }

  /// A study with one trial that runs, and so many reports of it.
  void add_reports(std::int64_t count) {
    const auto database = store::open_database(server_->url());
    store::StudyStore store(*database);
    auto found = store.find("one");
    if (!found) {
      tune::StudySpec spec;
      spec.objectives = {{"loss", search::Direction::minimize}};
      store::StudyRecord study;
      study.name = study.first_name = "one";
      study.spec = spec.to_json();
      store.create(study);
      found = store.find("one");
    }
    store.claim(found->id, store.lease_date());
    store::StudyBatch batch;
    batch.from_seq = found->seq;
    batch.now = store.lease_date();
    std::int64_t seq = found->seq;
    if (seq == 0) {
      store::TrialRecord trial;
      trial.status = store::TrialStatus::running;
      trial.point = "0";
      trial.config = R"({"x": 1})";
      trial.asked_seq = ++seq;
      batch.trials.push_back(trial);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      store::ReportRecord report;
      report.seq = ++seq;
      report.iteration = ++reports_;
      report.metrics = fmt::format(R"({{"loss": {}}})", 100 - reports_);
      batch.reports.push_back(report);
    }
    batch.to_seq = seq;
    store.write(found->id, batch);
    store.release(found->id);
  }
  [[nodiscard]] static Json last_of(const Dashboard& dashboard) {
    return json_in(get(dashboard, "/api/study?name=one"))["trials"][0]["iterations"];
  }

  std::unique_ptr<test::PostgresServer> server_;
  std::int64_t reports_ = 0;
};

TEST_F(Postgres, ShowsStudiesAndSurvivesARestartOfTheServer) {
  add_reports(3);
  const Dashboard dashboard({.port = 0, .storage = server_->url(), .token = kToken});
  EXPECT_EQ(last_of(dashboard), 3);
  const Fd socket = connect(dashboard);
  send(socket, "GET /api/events HTTP/1.1\r\n" + kHost + kBearer + "\r\n");
  read_until(socket.get(), "event: hello");
  add_reports(1);
  EXPECT_EQ(last_of(dashboard), 4);
  EXPECT_THAT(get(dashboard, "/api/trial?name=one&trial=0"), HasSubstr("[4,96.0]"));
  EXPECT_THAT(get(dashboard, "/api/trials?name=one&filter=loss%20%3C%2097"),
              HasSubstr("\"matching\":1"));

  server_->stop();
  EXPECT_THAT(get(dashboard, "/api/study?name=one"), StartsWith("HTTP/1.1 503"));
  server_->start();
  add_reports(2);
  EXPECT_EQ(last_of(dashboard), 6);
  // The page was told of it, too, over the connection that it had all the time.
  std::string seen;
  for (int i = 0; i < 100 && seen.empty(); ++i) {
    add_reports(1);
    pollfd ready{socket.get(), POLLIN, 0};
    if (::poll(&ready, 1, 200) > 0) seen = read_until(socket.get(), "\"seq\"");
  }
  EXPECT_THAT(seen, HasSubstr("one"));
}

}  // namespace
}  // namespace kolo::dashboard
