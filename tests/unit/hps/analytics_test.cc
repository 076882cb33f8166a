#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>

#include "base/files.h"
#include "base/yaml.h"
#include "hps/analytics/log_events.h"
#include "hps/analytics/searches.h"
#include "hps/analytics/top_rows.h"
#include "store/study_store.h"
#include "tune/study/study_spec.h"
#include "unit/hps/error_of.h"

namespace kolo::hps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kResults =
    "p:lr,p:units,p:kind,objective,job_id,job_status,m:timestamp_submit,m:timestamp_gather,m:note\n"
    "0.1,16,a,1.5,0,DONE,0,2,\n"
    "0.2,32,b,F_timeout,1,DONE,0,4,slow\n"
    "0.3,64,\"b,c\",2.5,2,DONE,2,5,\n"
    "0.4,16,a,2,3,DONE,4,8,\"said \"\"so\"\"\"\n"
    "0.5,16,a,F_cancelled,4,CANCELLED,5,8,\n";

class AnalyticsTest : public testing::Test {
 protected:
  std::filesystem::path folder(const std::string& name, const std::string& results = kResults,
                               const std::string& infos = "{\"num_workers\": 2}") {
    const auto place = dir_.path() / name;
    std::filesystem::create_directories(place);
    write_file_atomically(place / "results.csv", results);
    if (!infos.empty()) write_file_atomically(place / "init_infos.json", infos);
    return place;
  }
  TempDir dir_;
};

std::vector<std::string> ids(const std::vector<const ResultRow*>& rows) {
  std::vector<std::string> all;
  for (const ResultRow* row : rows) all.push_back(row->job_id);
  return all;
}

TEST_F(AnalyticsTest, TheBestComeFirst) {
  const ResultsTable table = read_results(folder("one"));
  EXPECT_THAT(ids(top_rows(table, 10)), ElementsAre("2", "3", "0"));
  EXPECT_THAT(ids(top_rows(table, 1)), ElementsAre("2"));
}

TEST_F(AnalyticsTest, OfSeveralObjectivesFrontsComeFirst) {
  const ResultsTable table = read_results(
      folder("two",
             "p:x,objective_0,objective_1,job_id,job_status,m:timestamp_submit,m:timestamp_gather\n"
             "1,0,0,0,DONE,0,1\n2,3,1,1,DONE,0,1\n3,1,3,2,DONE,0,1\n4,F_x,F_x,3,DONE,0,1\n"
             "5,2,0.5,4,DONE,0,1\n"));
  ASSERT_EQ(table.objectives, 2U);
  EXPECT_THAT(ids(top_rows(table, 10)), ElementsAre("1", "2", "4", "0"));
  EXPECT_THAT(ids(top_rows(table, 1)), ElementsAre("1"));
  EXPECT_EQ(parse_json(rows_as_json(table, top_rows(table, 1)), "rows")[0]["objective_1"], 1);
}

TEST_F(AnalyticsTest, EveryFormatSaysTheSame) {
  const ResultsTable table = read_results(folder("one"));
  const auto rows = top_rows(table, 2);
  const Json json = parse_json(rows_as_json(table, rows), "json");
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["objective"], 2.5);
  EXPECT_EQ(json[0]["parameters"]["kind"], "b,c");
  EXPECT_EQ(json[0]["seconds"], 3);
  EXPECT_EQ(json[1]["metadata"]["note"], "said \"so\"");
  EXPECT_EQ(parse_yaml(rows_as_yaml(table, rows), "yaml"), json);

  const auto again = dir_.path() / "best.csv";
  write_file_atomically(again, rows_as_csv(table, rows));
  const ResultsTable written = read_results(again);
  ASSERT_EQ(written.rows.size(), 2U);
  EXPECT_EQ(written.parameters, table.parameters);
  EXPECT_EQ(written.rows[0].parameters, rows[0]->parameters);
  EXPECT_EQ(written.rows[1].objectives, rows[1]->objectives);
  EXPECT_EQ(written.rows[1].metadata, rows[1]->metadata);
  EXPECT_EQ(written.rows[1].gathered, 8);
}

TEST_F(AnalyticsTest, KeysThatYamlWouldMisreadAreQuoted) {
  const ResultsTable table =
      read_results(folder("odd",
                          "p:no,p:x y,p:y,objective,job_id,job_status,m:timestamp_submit,"
                          "m:timestamp_gather\nyes,1,null,2,0,DONE,0,1\n"));
  const auto rows = top_rows(table, 1);
  EXPECT_EQ(parse_yaml(rows_as_yaml(table, rows), "yaml"),
            parse_json(rows_as_json(table, rows), "json"));
}

TEST(WorkloadTest, CountsWhatRunsAtEachMoment) {
  // Two at a time, a change of guard at 2, a pause from 5 to 6.
  const Workload load = workload_of({{0, 2}, {0, 4}, {2, 5}, {6, 8}});
  EXPECT_THAT(load.timestamps, ElementsAre(0, 4, 5, 6, 8));
  EXPECT_THAT(load.num_jobs_running, ElementsAre(2, 1, 0, 1, 0));
  EXPECT_EQ(load.seconds(), 8);
  EXPECT_EQ(load.busy_seconds, 11);
  EXPECT_EQ(load.most(), 2);
  EXPECT_NEAR(load.utilisation(2), 11.0 / 16, 1e-12);
  EXPECT_EQ(workload_of(std::vector<std::pair<double, double>>{}).seconds(), 0);
  EXPECT_EQ(workload_of(std::vector<std::pair<double, double>>{{3, 1}}).mean(), 0);
  const Json json = workload_document(load, 2);
  EXPECT_EQ(json["timestamps"].size(), json["num_jobs_running"].size());
  EXPECT_EQ(json["num_workers"], 2);
}

TEST_F(AnalyticsTest, JobsHaveAWorkload) {
  auto database = jobs::JobDatabase::init(dir_.path() / "db");
  database.set_application({.name = "sleep", .executable = "sleep 1"});
  std::vector<jobs::Job> wanted(3);
  for (auto& job : wanted) job.name = "task", job.workflow = "search", job.application = "sleep";
  wanted[2].workflow = "other";
  const auto ids = database.create(wanted);
  EXPECT_EQ(error_of([&] { (void)workload_of(database, "search", 0); }).code(),
            ErrorCode::not_found);
  const auto move = [&](jobs::JobId id, std::initializer_list<const char*> states) {
    for (const char* state : states) database.modify(id, "state", state);
  };
  const auto time_of = [&](jobs::JobId id, jobs::JobState state) {
    for (const auto& entry : database.history(id))
      if (entry.state == state) return entry.time;
    ADD_FAILURE() << jobs::to_string(state);
    return 0.0;
  };
  for (const jobs::JobId id : ids) move(id, {"STAGED_IN", "PREPROCESSED", "RUNNING"});
  move(ids[0], {"RUN_DONE"});
  const double began = time_of(ids[0], jobs::JobState::running),
               second = time_of(ids[1], jobs::JobState::running),
               ended = time_of(ids[0], jobs::JobState::run_done);
  // The second runs still; the third is of another workflow.
  const Workload load = workload_of(database, "search", ended + 5);
  EXPECT_EQ(load.timestamps.front(), began);
  EXPECT_EQ(load.timestamps.back(), ended + 5);
  EXPECT_EQ(load.num_jobs_running.back(), 0);
  EXPECT_NEAR(load.busy_seconds, (ended - began) + (ended + 5 - second), 1e-6);
}

TEST_F(AnalyticsTest, SearchesAreSummarized) {
  const SearchResults search = read_search(folder("one"));
  EXPECT_EQ(search.name, "one");
  EXPECT_EQ(search.workers, 2);
  const SearchSummaryRow row = summarize(search, 2, 0);
  EXPECT_EQ(row.evaluations, 4U);  // what was cut off by the end does not count
  EXPECT_EQ(row.failures, 1U);
  EXPECT_EQ(row.best, 2.5);
  EXPECT_EQ(row.best_at, 3U);
  EXPECT_EQ(row.best_after, 1.5);
  EXPECT_EQ(row.mean, 2.0);
  EXPECT_EQ(row.seconds, 8);
  EXPECT_NEAR(*row.utilisation, 16.0 / 16, 1e-12);
  EXPECT_THAT(error_of([&] { (void)summarize(search, 2, 1); }).message(),
              HasSubstr("one: there is no objective 1"));
  EXPECT_FALSE(summarize(read_search(folder("empty",
                                            "p:x,objective,job_id,job_status,"
                                            "m:timestamp_submit,m:timestamp_gather\n")),
                         5, 0)
                   .best);
}

TEST_F(AnalyticsTest, TheOlderLayoutHasNoWorkload) {
  const SearchResults old =
      read_search(folder("old", "x,objective,elapsed_sec\n1,0.5,10\n2,0.75,30\n", ""));
  const SearchSummaryRow row = summarize(old, 5, 0);
  EXPECT_EQ(row.best, 0.75);
  EXPECT_EQ(row.seconds, 30);
  EXPECT_FALSE(row.utilisation);
  EXPECT_EQ(error_of([&] { (void)workload_of(old.table); }).code(), ErrorCode::failed_precondition);
}

TEST_F(AnalyticsTest, EqualNamesGetLonger) {
  const auto searches =
      read_searches({folder("a/run"), folder("b/run") / "results.csv", folder("c")});
  EXPECT_EQ(searches[0].name, "a/run");
  EXPECT_EQ(searches[1].name, "b/run");
  EXPECT_EQ(searches[2].name, "c");
}

/// A study whose loss is least at its second trial; the third trial failed.
std::string study_in(const std::filesystem::path& file) {
  const auto database = store::open_database(file.string());
  store::StudyStore studies(*database);
  store::StudyRecord study;
  study.name = "losses";
  tune::StudySpec spec;
  spec.trainable = "train";
  spec.objectives = {{"loss", search::Direction::minimize}};
  study.spec = spec.to_json();
  study.created = 100;
  const auto id = studies.create(study);
  studies.claim(id, 100);
  store::StudyBatch batch;
  const double losses[] = {3, 1, 2};
  for (std::int64_t i = 0; i < 3; ++i) {
    store::TrialRecord trial;
    trial.number = i;
    trial.status = i == 2 ? store::TrialStatus::error : store::TrialStatus::terminated;
    if (i == 2) trial.error = "F_memory";
    trial.config = fmt::format(R"({{"lr": 0.{}}})", i + 1);
    trial.asked_seq = 3 * i + 1;
    trial.ended_seq = 3 * i + 3;
    trial.started = 100.0 + static_cast<double>(i);
    trial.ended = *trial.started + 1;
    batch.trials.push_back(trial);
    store::ReportRecord report;
    report.seq = 3 * i + 2;
    report.trial = i;
    report.iteration = 1;
    report.metrics = fmt::format(R"({{"loss": {}}})", losses[i]);
    batch.reports.push_back(report);
  }
  batch.to_seq = 9;
  studies.write(id, batch);
  return file.string();
}

TEST_F(AnalyticsTest, ReadsAStudyOfADatabaseAsItReadsAFile) {
  const std::string file = study_in(dir_.path() / "studies.db");
  const auto searches = read_searches({file, folder("csv")});
  EXPECT_EQ(searches[0].name, "losses");
  EXPECT_EQ(read_search(file + "#losses").table.rows.size(), 3U);
  const ResultsTable& table = searches[0].table;
  EXPECT_THAT(table.parameters, ElementsAre("lr"));
  EXPECT_THAT(ids(top_rows(table, 5)), ElementsAre("1", "0"));  // the least loss first
  EXPECT_EQ(table.rows.at(2).failure, "F_memory");
  const SearchSummaryRow row = summarize(searches[0], 1, 0);
  EXPECT_EQ(row.best, 1);
  EXPECT_EQ(row.best_after, 3);
  EXPECT_EQ(row.failures, 1U);
  EXPECT_EQ(row.seconds, 3);
  const Plot plot = plot_searches({searches[0]}, {});
  EXPECT_EQ(plot.series.at(1).points.back().second, 1);
  EXPECT_EQ(error_of([&] { (void)read_search(file + "#other"); }).code(), ErrorCode::not_found);
}

TEST_F(AnalyticsTest, PlotsFollowTheBestSoFar) {
  const auto searches = read_searches({folder("a"), folder("b")});
  const Plot plot = plot_searches(searches, {});
  ASSERT_EQ(plot.series.size(), 6U);  // of each search its points, the best so far, and failures
  EXPECT_THAT(plot.series[1].name, "a");
  EXPECT_EQ(plot.series[2].style, PlotSeries::Style::failures);
  EXPECT_THAT(plot.series[2].points, ElementsAre(testing::Pair(2, 0), testing::Pair(5, 0)));
  const auto& best = plot.series[1].points;
  EXPECT_THAT(best, ElementsAre(testing::Pair(1, 1.5), testing::Pair(2, 1.5), testing::Pair(3, 2.5),
                                testing::Pair(4, 2.5), testing::Pair(5, 2.5)));
  const Plot regret = plot_searches(searches, {.x = "time", .optimum = 3});
  EXPECT_THAT(regret.series[1].points.back(), testing::Pair(8, 0.5));
  EXPECT_THAT(regret.series[1].points.front(), testing::Pair(2, 1.5));
  const Plot column = plot_searches(searches, {.x = "p:lr", .y = "units"});
  ASSERT_EQ(column.series.size(), 2U);
  EXPECT_THAT(column.series[0].points[2], testing::Pair(0.3, 64));
}

TEST_F(AnalyticsTest, TwoObjectivesHaveAParetoFront) {
  const auto searches = read_searches({folder(
      "two",
      "p:x,objective_0,objective_1,job_id,job_status,m:timestamp_submit,m:timestamp_gather\n"
      "1,0,0,0,DONE,0,1\n2,3,1,1,DONE,0,1\n3,1,3,2,DONE,0,1\n4,F_x,F_x,3,DONE,0,1\n")});
  const Plot plot = plot_searches(searches, {.x = "objective_0", .y = "objective_1"});
  ASSERT_EQ(plot.series.size(), 2U);
  EXPECT_EQ(plot.series[1].name, "Pareto front");
  EXPECT_THAT(plot.series[1].points, ElementsAre(testing::Pair(1, 3), testing::Pair(3, 1)));
}

TEST_F(AnalyticsTest, PlotsNameTheColumnsThereAre) {
  const auto searches = read_searches({folder("a")});
  const Error unknown = error_of([&] { (void)plot_searches(searches, {.x = "p:lrr"}); });
  EXPECT_EQ(unknown.code(), ErrorCode::not_found);
  EXPECT_THAT(unknown.message(), HasSubstr("did you mean 'p:lr'? known: evaluations, time"));
  EXPECT_THAT(error_of([&] { (void)plot_searches(searches, {.x = "kind"}); }).message(),
              HasSubstr("has no numbers"));
}

TEST_F(AnalyticsTest, FewVeryBadResultsDoNotPressTheRestIntoALine) {
  std::string results =
      "p:x,objective,job_id,job_status,m:timestamp_submit,m:timestamp_gather\n1,-9000,0,DONE,0,1\n";
  for (int i = 1; i < 40; ++i)
    results += fmt::format("{},{},{},DONE,{},{}\n", i, -40 + i, i, i, i + 1);
  const Plot plot = plot_searches(read_searches({folder("bad", results)}), {});
  EXPECT_GT(plot.y_low, -60);
  EXPECT_GT(plot.y_high, -1);
  const Plot least = plot_searches(read_searches({folder("bad", results)}), {.optimum = 0});
  EXPECT_LT(least.y_high, 60);
  EXPECT_LT(least.y_low, 1);
}

TEST(LogEventsTest, TornLinesAreLeftOut) {
  const LogEvents log = read_log(
      "{\"time\": 10, \"event\": \"start_infos\"}\n"
      "{\"time\": 11, \"event\": \"result\", \"id\": \"0\", \"objective\": 2}\n"
      "{\"time\": 12, \"event\": \"result\", \"id\": \"1\", \"failure\": \"F_x\"}\n"
      "{\"time\": 13, \"event\": \"result\", \"id\": \"2\", \"objective\": [3, 1]}\n"
      "{\"time\": 14, \"event\": \"resu",
      "kolo.log");
  EXPECT_EQ(log.events.size(), 4U);
  EXPECT_THAT(log.damaged, ElementsAre(5));
  const Json document = log_document(log);
  EXPECT_EQ(document["events"].size(), 4U);
  const Json& summary = document["summary"];
  EXPECT_EQ(summary["by_event"]["result"], 3);
  EXPECT_EQ(summary["evaluations"], 3);
  EXPECT_EQ(summary["failures"], 1);
  EXPECT_EQ(summary["best"]["id"], "2");
  EXPECT_EQ(summary["seconds"], 3);
  EXPECT_EQ(summary["damaged_lines"], Json::array({5}));
}

TEST(LogEventsTest, DeepHypersLogsAreUnderstood) {
  const LogEvents log = read_log(
      "2020-01-01 10:00:00|77|INFO|search: Loaded the problem\n"
      "2020-01-01 10:00:01|77|INFO|search >>> {\"type\": \"env_stats\", \"n\": 3}\n",
      "deephyper.log");
  ASSERT_EQ(log.events.size(), 1U);
  EXPECT_EQ(log.events[0], (Json{{"event", "env_stats"}, {"n", 3}}));
  EXPECT_TRUE(log.damaged.empty());
}

TEST(LogEventsTest, AnotherFileIsRefused) {
  const Error error = error_of([] { (void)read_log("p:x,objective\n1,2\n", "results.csv"); });
  EXPECT_EQ(error.code(), ErrorCode::corruption);
  EXPECT_THAT(error.message(), HasSubstr("results.csv: none of its 2 lines"));
  EXPECT_TRUE(read_log("", "kolo.log").events.empty());
}

}  // namespace
}  // namespace kolo::hps
