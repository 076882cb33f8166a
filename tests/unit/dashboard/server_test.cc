// The server as strangers, hostile pages and the owner's browser meet it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <fstream>
#include <memory>
#include <thread>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "dashboard/dashboard.h"
#include "dashboard_client.h"
#include "store/study_store.h"
#include "tune/output/studies_table.h"
#include "tune/study/study_requests.h"
#include "tune/study/study_spec.h"

namespace kolo::dashboard {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kScript = "<script>alert(1)</script>";

class Server : public testing::Test, protected DashboardClient {
 protected:
  Server() {
    const std::string url = (scratch_.path() / "kolo.db").string();
    database_ = store::open_database(url);
    store_ = std::make_unique<store::StudyStore>(*database_);
    tune::StudySpec spec;
    spec.objectives = {{"loss", search::Direction::minimize}};
    spec.num_samples = 3;
    store::StudyRecord study;
    study.name = study.first_name = kScript;
    study.directory = scratch_.path().string();
    study.spec = spec.to_json();
    study.created = 1000;
    study_ = store_->create(study);
    store_->claim(study_, store_->lease_date());
    add_trials(0, 3);
  }

  /// Trials whose loss is their number, in one batch.
  void add_trials(std::int64_t from, std::int64_t to) {
    store::StudyBatch batch;
    batch.from_seq = seq_;
    batch.now = store_->lease_date();
    for (std::int64_t n = from; n < to; ++n) {
      store::TrialRecord trial;
      trial.number = n;
      trial.status = store::TrialStatus::terminated;
      trial.config = fmt::format(R"({{"x": {}, "name": "{}"}})", n, kScript);
      trial.directory = (scratch_.path() / fmt::format("trial{}", n)).string();
      trial.asked_seq = ++seq_;
      trial.created = 1000;
      store::ReportRecord report;
      report.seq = ++seq_;
      report.trial = n;
      report.iteration = 1;
      report.metrics = fmt::format(R"({{"loss": {}}})", n);
      trial.ended_seq = ++seq_;
      batch.trials.push_back(trial);
      batch.reports.push_back(report);
    }
    batch.to_seq = seq_;
    store_->write(study_, batch);
  }

  Dashboard serve(bool read_only = false, HttpLimits limits = {}) {
    return Dashboard({.port = 0,
                      .storage = (scratch_.path() / "kolo.db").string(),
                      .read_only = read_only,
                      .token = kToken,
                      .actions = scratch_.path() / "actions.jsonl",
                      .limits = limits});
  }

  static inline const std::string kName = "%3Cscript%3Ealert(1)%3C%2Fscript%3E";

  TempDir scratch_{"kolo-dashboard"};
  std::unique_ptr<store::Database> database_;
  std::unique_ptr<store::StudyStore> store_;
  store::StudyId study_{};
  std::int64_t seq_ = 0;
};

TEST_F(Server, NobodyGetsAnythingWithoutTheToken) {
  const auto dashboard = serve();
  for (const char* path : {"/", "/api/studies", "/api/events", "/drawing.js", "/nothing"}) {
    const std::string line = std::string("GET ") + path;
    EXPECT_THAT(ask(dashboard, line, kHost), StartsWith("HTTP/1.1 401")) << path;
    EXPECT_THAT(ask(dashboard, line, kHost + "Authorization: Bearer 0123456789abcdee\r\n"),
                StartsWith("HTTP/1.1 401"));
    EXPECT_THAT(ask(dashboard, line + "?token=x", kHost), StartsWith("HTTP/1.1 401"));
  }
}

TEST_F(Server, TheTokenInTheAddressBecomesACookie) {
  const auto dashboard = serve();
  EXPECT_THAT(dashboard.address(), HasSubstr(fmt::format("/?token={}", kToken)));
  const auto first = ask(dashboard, fmt::format("GET /?token={}", kToken), kHost);
  EXPECT_THAT(first, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(first, HasSubstr("HttpOnly; SameSite=Strict"));
  EXPECT_THAT(first, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self'"));
  const auto cookie = fmt::format("Cookie: kolo_dashboard_{}={}\r\n", dashboard.port(), kToken);
  EXPECT_THAT(ask(dashboard, "GET /api/studies", kHost + cookie), StartsWith("HTTP/1.1 200"));
}

TEST_F(Server, OtherSitesAndNamesAreRefused) {
  const auto dashboard = serve();
  EXPECT_THAT(ask(dashboard, "GET /api/studies", "Host: evil.example\r\n" + kBearer),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(
      ask(dashboard, "GET /api/studies", kHost + kBearer + "Origin: http://evil.example\r\n"),
      StartsWith("HTTP/1.1 403"));
  const auto cookie = fmt::format("Cookie: kolo_dashboard_{}={}\r\n", dashboard.port(), kToken);
  EXPECT_THAT(ask(dashboard, "POST /api/stop", kHost + cookie, R"({"study": "x"})"),
              StartsWith("HTTP/1.1 403"));
}

TEST_F(Server, OnlyItsOwnFilesAreThere) {
  const auto dashboard = serve();
  for (const char* path : {"/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/etc/passwd",
                           "/drawing.js/../../etc/passwd"}) {
    const auto answer = get(dashboard, path);
    EXPECT_THAT(answer, Not(HasSubstr("root:"))) << path;
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 404")) << path;
  }
  EXPECT_THAT(get(dashboard, "/drawing.js"), HasSubstr("function useStudy"));
}

TEST_F(Server, ShowsStudiesTrialsAndCurves) {
  const auto dashboard = serve();
  const Json studies = json_in(get(dashboard, "/api/studies"));
  ASSERT_EQ(studies["rows"].size(), 1U);
  EXPECT_EQ(studies["rows"][0][0], kScript);
  EXPECT_EQ(studies["rows"][0][1], "running");
  EXPECT_EQ(studies["planned"][0], 3);

  const Json study = json_in(get(dashboard, "/api/study?name=" + kName));
  EXPECT_EQ(study["name"], kScript);
  EXPECT_EQ(study["trials"].size(), 3U);
  EXPECT_EQ(study["counts"]["TERMINATED"], 3);

  const Json some = json_in(get(
      dashboard, "/api/trials?name=" + kName + "&filter=loss%20%3E%200&sort=loss&desc=1&limit=1"));
  EXPECT_EQ(some["matching"], 2);
  ASSERT_EQ(some["rows"].size(), 1U);
  EXPECT_EQ(some["rows"][0][0], 2);

  const Json curves = json_in(get(dashboard, "/api/curves?metric=loss&name=" + kName));
  EXPECT_EQ(curves["2"], Json::parse("[[1, 2.0]]"));

  // What is drawn follows the same filter; the facts at the top are of the whole study.
  const std::string high = "&filter=loss%20%3E%201&name=" + kName;
  const Json drawn = json_in(get(dashboard, "/api/study?" + high));
  ASSERT_EQ(drawn["trials"].size(), 1U);
  EXPECT_EQ(drawn["trials"][0]["n"], 2);
  EXPECT_EQ(drawn["matching"], 1);
  EXPECT_EQ(drawn["total"], 3);
  EXPECT_EQ(drawn["best"], json_in(get(dashboard, "/api/summary?name=" + kName))["best"]);
  const Json drawn_curves = json_in(get(dashboard, "/api/curves?metric=loss" + high));
  EXPECT_EQ(drawn_curves.size(), 1U);
  EXPECT_EQ(drawn_curves["2"], curves["2"]);
  EXPECT_EQ(json_in(get(dashboard, "/api/trial?trial=1&name=" + kName))["config"]["x"], 1);
}

TEST_F(Server, ReportsOfATrialThatBeganMeanwhileAreForLater) {
  const auto dashboard = serve();
  store::StudyBatch batch;
  batch.from_seq = seq_;
  batch.now = store_->lease_date();
  store::ReportRecord report;
  report.seq = ++seq_;
  report.trial = 99;  // as if the trials had been read before it was there
  report.metrics = R"({"loss": 1})";
  batch.reports.push_back(report);
  batch.to_seq = seq_;
  store_->write(study_, batch);
  EXPECT_EQ(json_in(get(dashboard, "/api/study?name=" + kName))["total"], 3);
}

TEST_F(Server, SaysWhatIsWrongWithAQuestion) {
  const auto dashboard = serve();
  EXPECT_THAT(get(dashboard, "/api/study?name=none"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(get(dashboard, "/api/study"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(get(dashboard, "/api/trial?trial=x&name=" + kName), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(get(dashboard, "/api/trial?trial=9&name=" + kName), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(get(dashboard, "/api/trials?filter=los%20%3E%201&name=" + kName),
              HasSubstr("did you mean"));
  EXPECT_THAT(get(dashboard, "/api/study?filter=los%20%3E%201&name=" + kName),
              HasSubstr("did you mean"));
  EXPECT_THAT(get(dashboard, "/api/jobs"), StartsWith("HTTP/1.1 409"));
}

TEST_F(Server, ActionsAskTheControllerAndAreWrittenDown) {
  const auto dashboard = serve();
  const std::string wish = json_text({{"study", kScript}, {"trial", 1}});
  EXPECT_THAT(ask(dashboard, "POST /api/stop", kHost + kBearer, wish), StartsWith("HTTP/1.1 200"));
  const auto requests = store_->requests(study_);
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].kind, "stop");
  EXPECT_EQ(requests[0].trial, 1);
  const std::string none = json_text({{"study", kScript}, {"trial", 7}});
  EXPECT_THAT(ask(dashboard, "POST /api/stop", kHost + kBearer, none), StartsWith("HTTP/1.1 404"));
  const std::string log = read_file(scratch_.path() / "actions.jsonl");
  EXPECT_THAT(log, HasSubstr("\"from\":\"127.0.0.1\""));
  EXPECT_THAT(log, HasSubstr("\"outcome\":\"done\""));
  EXPECT_THAT(log, HasSubstr("has no trial 7"));
  EXPECT_THAT(log, Not(HasSubstr(kToken)));
}

TEST_F(Server, TrialsAreAddedToAStudyThatRuns) {
  const auto dashboard = serve();
  const auto add = [&](const Json& count) {
    return ask(dashboard, "POST /api/add", kHost + kBearer,
               json_text({{"study", kScript}, {"count", count}}));
  };
  EXPECT_THAT(add(5), StartsWith("HTTP/1.1 200"));
  ASSERT_EQ(store_->requests(study_).size(), 1U);
  EXPECT_EQ(tune::added_by_request(store_->requests(study_)[0].kind), 5);
  EXPECT_THAT(add(0), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(add(-5), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(add("many"), StartsWith("HTTP/1.1 400"));
  store_->release(study_);
  EXPECT_THAT(add(5), HasSubstr("kolo resume"));
  EXPECT_EQ(store_->requests(study_).size(), 1U);
}

TEST_F(Server, OutputIsFollowed) {
  const auto dashboard = serve();
  const auto folder = scratch_.path() / "trial1";
  std::filesystem::create_directories(folder);
  std::ofstream out(folder / "stdout");
  out << "first " << kScript << std::endl;
  const Fd socket = connect(dashboard);
  send_all(
      socket.get(),
      fmt::format("GET /api/follow?trial=1&name={} HTTP/1.1\r\n{}{}\r\n", kName, kHost, kBearer),
      Deadline::after(20s), "the dashboard");
  EXPECT_THAT(read_until(socket.get(), "first"), HasSubstr("text/event-stream"));
  out << "half of \xc3" << std::flush;  // a letter of two bytes
  EXPECT_THAT(read_until(socket.get(), "half of"), HasSubstr("\"text\":\"half of \""));
  out << "\xa4 letter" << std::endl;
  EXPECT_THAT(read_until(socket.get(), "letter"), HasSubstr("ä letter"));
  std::ofstream(folder / "stdout") << "anew" << std::endl;
  EXPECT_THAT(read_until(socket.get(), "anew"), HasSubstr("\"again\":true"));
  EXPECT_THAT(get(dashboard, "/api/follow?trial=9&name=" + kName), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(get(dashboard, "/api/follow?trial=..%2F1&name=" + kName), StartsWith("HTTP/1.1 400"));
}

TEST_F(Server, ReadOnlyRefusesActions) {
  const auto dashboard = serve(true);
  for (const char* action : {"stop", "add", "kill", "drain"})
    EXPECT_THAT(ask(dashboard, std::string("POST /api/") + action, kHost + kBearer,
                    json_text({{"study", kScript}, {"count", 1}})),
                StartsWith("HTTP/1.1 403"))
        << action;
  EXPECT_TRUE(store_->requests(study_).empty());
}

TEST_F(Server, TellsWhatHasChanged) {
  const auto dashboard = serve();
  const Fd socket = connect(dashboard);
  send_all(socket.get(), "GET /api/events HTTP/1.1\r\n" + kHost + kBearer + "\r\n",
           Deadline::after(20s), "the dashboard");
  ASSERT_THAT(read_until(socket.get(), "event: hello"), HasSubstr("text/event-stream"));
  // The watch may not have looked for the first time; each batch after that is a change.
  std::string seen;
  for (std::int64_t n = 3; n < 100 && seen.empty(); ++n) {
    add_trials(n, n + 1);
    pollfd ready{socket.get(), POLLIN, 0};
    if (::poll(&ready, 1, 200) > 0) seen = read_until(socket.get(), "alert(1)");
  }
  EXPECT_THAT(seen, HasSubstr("data: {\"seq\""));
}

TEST_F(Server, HugeRequestsAreCutOff) {
  const auto dashboard = serve();
  const Fd socket = connect(dashboard);
  send(socket, "GET / HTTP/1.1\r\nX: " + std::string(4 << 20, 'x') + "\r\n\r\n");
  EXPECT_THAT(read_until(socket.get()), Not(HasSubstr("HTTP/1.1 200")));
  std::string many;
  for (int i = 0; i < 5000; ++i) many += fmt::format("X-{}: 0123456789\r\n", i);
  EXPECT_THAT(ask(dashboard, "GET /", kHost + kBearer + many), Not(HasSubstr("HTTP/1.1 200")));
  EXPECT_THAT(get(dashboard, "/api/studies"), StartsWith("HTTP/1.1 200"));
}

TEST_F(Server, AStudyThatCannotBeReadIsLeftOut) {
  store::StudyRecord study;
  study.name = study.first_name = "deep";
  study.spec = store_->at(kScript).spec;
  study.created = 2000;
  const auto id = store_->create(study);
  store_->claim(id, store_->lease_date());
  store::StudyBatch batch;
  batch.now = store_->lease_date();
  store::TrialRecord trial;
  trial.status = store::TrialStatus::terminated;
  trial.config = "{}";
  trial.asked_seq = 1;
  trial.ended_seq = 3;
  store::ReportRecord report;
  report.seq = 2;
  report.iteration = 1;
  report.metrics = R"({"loss": 1, "deep": )" + std::string(300, '[') + std::string(300, ']') + "}";
  batch.trials.push_back(trial);
  batch.reports.push_back(report);
  batch.to_seq = 3;
  store_->write(id, batch);
  const auto dashboard = serve();
  for (int i = 0; i < 2; ++i) {
    const Json studies = json_in(get(dashboard, "/api/studies"));
    ASSERT_EQ(studies.at("rows").size(), 1U) << studies;
    EXPECT_EQ(studies.at("rows")[0][0], kScript);
  }
  EXPECT_THAT(get(dashboard, "/api/study?name=deep"), HasSubstr("nested more than"));
  const auto table = tune::studies_table(*store_);
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0][0].as_string(), kScript);
}

TEST_F(Server, PartsOfAnAnswerAreNotSentManyTimes) {
  const auto dashboard = serve();
  const std::string whole = get(dashboard, "/drawing.js");
  std::string ranges = "Range: bytes=0-";
  for (int i = 0; i < 100; ++i) ranges += ",0-";
  const std::string answer = ask(dashboard, "GET /drawing.js", kHost + kBearer + ranges + "\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(answer.size(), whole.size());
}

TEST_F(Server, AThousandSlowClientsMakeRoomForTheOwner) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;  // their ends of the connections are in this process, too
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  const auto dashboard = serve(false, {.request = 60s});
  std::vector<Fd> slow;
  for (int i = 0; i < 1000; ++i) {
    slow.push_back(connect(dashboard));
    send(slow.back(), "GET / HT");
  }
  // Those that make way may still be on it; a browser tries again.
  std::string answer;
  for (const auto deadline = Deadline::after(20s); answer.empty() && !deadline.passed();)
    answer = get(dashboard, "/api/studies");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
}

TEST_F(Server, ASlowRequestEndsInTime) {
  const auto dashboard = serve(false, {.request = 100ms, .idle = 100ms});
  const Fd silent = connect(dashboard), slow = connect(dashboard);
  send_all(slow.get(), "GET / HT", Deadline::after(20s), "it");
  EXPECT_EQ(read_until(slow.get()), "");
  EXPECT_EQ(read_until(silent.get()), "");
}

TEST_F(Server, EndsAtOnceWithConnectionsOpen) {
  std::vector<Fd> open;
  {
    const auto dashboard = serve(false, {.request = 600s, .idle = 600s});
    for (const char* path : {"/api/events", "/api/about"}) {
      open.push_back(connect(dashboard));
      send_all(open.back().get(), fmt::format("GET {} HTTP/1.1\r\n{}{}\r\n", path, kHost, kBearer),
               Deadline::after(20s), "it");
      read_until(open.back().get(), "\r\n\r\n");
    }
    open.push_back(connect(dashboard));
  }
  for (const auto& socket : open) EXPECT_THAT(read_until(socket.get()), Not(HasSubstr("nothing")));
}

TEST_F(Server, ATakenPortIsNamed) {
  const auto dashboard = serve();
  try {
    const Dashboard second({.port = dashboard.port(), .token = kToken});
    FAIL() << "two dashboards on one port";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr(std::to_string(dashboard.port())));
    EXPECT_THAT(error.message(), HasSubstr("--port 0"));
  }
}

}  // namespace
}  // namespace kolo::dashboard
