#include "hps/search/search_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "base/files.h"
#include "kolo/error.h"
#include "kolo/search.h"

namespace kolo::hps {
namespace {

SearchPlan plan_in(const TempDir& folder, RunFunction run) {
  SearchPlan plan;
  plan.search = "ambs";
  plan.problem = "test";
  plan.space =
      search::Space::Builder().add("x", search::integer(0, 9)).add("y", search::real(0, 1)).build();
  plan.algorithm.name = "forest";
  plan.max_evals = 12;
  plan.log_dir = folder.path() / "log";
  plan.evaluator.method = "serial";
  plan.run_function = std::move(run);
  return plan;
}

double value_of(const RunningJob& job) { return job["x"].as_number() + job["y"].as_number(); }

TEST(SearchRun, EvaluatesMaximisesAndWritesEachResult) {
  const TempDir folder;
  std::set<std::int64_t> ids;
  auto summary = run_search(plan_in(folder, [&](RunningJob& job) {
    ids.insert(job.id());
    EXPECT_EQ(job.log_dir(), folder.path() / "log");
    return RunResult(value_of(job));
  }));
  EXPECT_EQ(summary.evaluations, 12);
  EXPECT_EQ(ids.size(), 12U);
  const auto table = read_results(folder.path() / "log");
  ASSERT_EQ(table.rows.size(), 12U);
  double best = -1;
  for (const auto& row : table.rows) best = std::max(best, row.objectives.at(0));
  EXPECT_EQ(summary.best.value().objectives.at(0), best);
}

TEST(SearchRun, RecordsAllObjectivesWhileAnEvaluationRuns) {
  const TempDir folder;
  auto plan = plan_in(folder, [](RunningJob& job) -> RunResult {
    EXPECT_THROW(job.record(1, 0.5), Error);  // one of two
    job.record(1, {job["x"].as_number() / 2, job["y"].as_number() / 2});
    return std::vector{job["x"].as_number(), job["y"].as_number()};
  });
  plan.algorithm.name = "random";
  plan.objectives = 2;
  const auto summary = run_search(plan);
  EXPECT_EQ(summary.evaluations, 12);
  EXPECT_EQ(summary.failures, 0);
  for (const auto& row : read_results(folder.path() / "log").rows)
    EXPECT_EQ(row.objectives.size(), 2U);
}

TEST(SearchRun, RecordsFailuresAndGoesOn) {
  const TempDir folder;
  auto plan = plan_in(folder, [](RunningJob& job) -> RunResult {
    switch (job.id() % 4) {
      case 0: return "F_memory";
      case 1: return std::numeric_limits<double>::quiet_NaN();
      case 2: throw std::runtime_error("broken");
      default: return value_of(job);
    }
  });
  const auto summary = run_search(plan);
  EXPECT_EQ(summary.failures, 9);
  std::map<std::string, int> failures;
  for (const auto& row : read_results(folder.path() / "log").rows) ++failures[row.failure];
  EXPECT_EQ(failures,
            (std::map<std::string, int>{{"F_memory", 3}, {"F_nan", 3}, {"F_error", 3}, {"", 3}}));
}

TEST(SearchRun, GivesUpAnEvaluationThatHangs) {
  const TempDir folder;
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
  };
  const auto gate = std::make_shared<Gate>();  // the thread that is left behind outlives the test
  auto plan = plan_in(folder, [gate](RunningJob& job) -> RunResult {
    if (job.id() != 1) return 1.0;
    std::unique_lock lock(gate->mutex);
    gate->changed.wait(lock, [&] { return gate->open; });
    return 2.0;
  });
  plan.max_evals = 3;
  plan.evaluator.timeout = std::chrono::milliseconds(100);
  plan.grace = std::chrono::milliseconds(10);
  const auto summary = run_search(plan);
  {
    const std::lock_guard lock(gate->mutex);
    gate->open = true;
  }
  gate->changed.notify_all();
  EXPECT_EQ(summary.evaluations, 3);
  EXPECT_EQ(summary.failures, 1);
  bool found = false;
  for (const auto& row : read_results(folder.path() / "log").rows)
    found = found || row.failure == "F_timeout";
  EXPECT_TRUE(found);
}

TEST(SearchRun, ResumesWithoutEvaluatingAnythingAgain) {
  const TempDir folder;
  std::atomic<bool> interrupted{false};
  std::map<std::int64_t, int> runs;
  const auto run = [&](RunningJob& job) {
    if (++runs[job.id()] == 1 && job.id() == 5) interrupted = true;
    return RunResult(value_of(job));
  };
  auto plan = plan_in(folder, run);
  plan.interrupted = &interrupted;
  EXPECT_TRUE(run_search(plan).interrupted);
  // As a crash leaves it: a row is missing, the last one torn.
  const auto csv = folder.path() / "log/results.csv";
  auto text = read_file(csv);
  std::ofstream(csv, std::ios::trunc) << text.substr(0, text.size() - 25);
  interrupted = false;
  plan.resume = true;
  const auto summary = run_search(plan);
  EXPECT_EQ(summary.evaluations, 12);
  std::set<std::string> ids;
  for (const auto& row : read_results(csv).rows) ids.insert(row.job_id);
  EXPECT_EQ(ids.size(), 12U);
  EXPECT_EQ(read_results(csv).rows.size(), 12U);
  int twice = 0;
  for (const auto& [id, count] : runs) twice += count > 1 ? 1 : 0;
  EXPECT_LE(twice, 1);  // the one that was under way
  plan.search = "random";
  EXPECT_THROW(run_search(plan), Error);
}

TEST(SearchRun, TheSameAnswersAfterAResume) {
  const auto run = [](RunningJob& job) { return RunResult(value_of(job)); };
  const TempDir whole, parts;
  run_search(plan_in(whole, run));
  auto plan = plan_in(parts, run);
  plan.max_evals = 5;
  run_search(plan);
  plan.resume = true;
  plan.max_evals = 12;
  run_search(plan);
  const auto expected = read_results(whole.path() / "log"),
             found = read_results(parts.path() / "log");
  ASSERT_EQ(found.rows.size(), expected.rows.size());
  for (std::size_t i = 0; i < found.rows.size(); ++i)
    EXPECT_EQ(found.rows[i].parameters, expected.rows[i].parameters) << i;
}

/// Two evaluations.
void write_results_of_deephyper(const std::filesystem::path& file) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << "x,y,objective,elapsed_sec\n"
                         "3,0.5,3.5,1.0\n"
                         "9,0.25,9.25,2.0\n";
}

TEST(SearchRun, ContinuesAResultsFileOfDeepHyper) {
  const TempDir folder;
  write_results_of_deephyper(folder.path() / "log/results.csv");
  int runs = 0;
  auto plan = plan_in(folder, [&](RunningJob& job) {
    ++runs;
    return RunResult(value_of(job));
  });
  plan.resume = true;
  plan.max_evals = 6;
  const auto summary = run_search(plan);
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(summary.evaluations, 6);
  EXPECT_GE(summary.best.value().objectives.at(0), 9.25);
  const auto table = read_results(folder.path() / "log");
  EXPECT_FALSE(table.older);
  EXPECT_EQ(table.rows.size(), 6U);
}

TEST(SearchRun, GoesOnAfterTheGreatestIdOfAResultsFile) {
  const TempDir folder;
  std::filesystem::create_directories(folder.path() / "log");
  std::ofstream(folder.path() / "log/results.csv")
      << "p:x,p:y,objective,job_id,job_status,m:timestamp_submit,m:timestamp_gather,m:error,m:"
         "other\n"
         "3,0.5,3.5,4,DONE,0,1,,\n"
         "9,0.25,9.25,2,DONE,1,2,,\n"
         "1,0.25,1.25,0.7,DONE,1,2,,\n";
  auto plan = plan_in(folder, [](RunningJob& job) { return RunResult(value_of(job)); });
  plan.resume = true;
  for (const int evaluations : {6, 8}) {
    plan.max_evals = evaluations;
    EXPECT_EQ(run_search(plan).evaluations, evaluations);
    std::set<std::string> ids;
    for (const auto& row : read_results(folder.path() / "log").rows) ids.insert(row.job_id);
    std::set<std::string> expected{"4", "2", "0.7"};
    for (int i = 3; i < evaluations; ++i) expected.insert(std::to_string(i + 2));
    EXPECT_EQ(ids, expected);
  }
}

TEST(SearchRun, GoesOnWhenItWasKilledBetweenTheFilesOfItsBeginning) {
  const TempDir folder;
  write_results_of_deephyper(folder.path() / "log/results-older.csv");
  int runs = 0;
  auto plan = plan_in(folder, [&](RunningJob& job) {
    ++runs;
    return RunResult(value_of(job));
  });
  plan.resume = true;
  plan.max_evals = 6;
  EXPECT_EQ(run_search(plan).evaluations, 6);
  EXPECT_EQ(runs, 4);
  plan.resume = false;  // what it went on from is no part of another search
  EXPECT_EQ(run_search(plan).evaluations, 6);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "log/results-older.csv"));
}

TEST(SearchRun, NamesTheFileWhoseFieldsAreWrong) {
  for (const char* infos :
       {R"({"kolo_search": 1, "first_number": -5})", R"({"seed": "a"})", R"({"kind": 3})",
        R"({"search": null})", R"({"problem": []})", R"({"id": 1})", R"({"job": {}})", "[]"}) {
    const TempDir folder;
    auto plan = plan_in(folder, [](RunningJob& job) { return RunResult(value_of(job)); });
    std::filesystem::create_directories(plan.log_dir);
    std::ofstream(plan.log_dir / "init_infos.json") << infos;
    plan.resume = true;
    try {
      run_search(plan);
      FAIL() << infos;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
      EXPECT_NE(error.message().find("init_infos.json"), std::string::npos) << error.message();
    }
  }
}

TEST(SearchRun, LearnsFromAnEarlierSearch) {
  const TempDir folder;
  const auto warm = folder.path() / "warm.csv";
  std::ofstream(warm) << "p:x,p:y,objective,job_id,job_status\n1,0.5,1.5,0,DONE\n";
  auto plan = plan_in(folder, [](RunningJob& job) { return RunResult(value_of(job)); });
  plan.warm_start = warm;
  EXPECT_EQ(run_search(plan).evaluations, 12);
  std::ofstream(warm) << "p:z,objective,job_id,job_status\n1,1.5,0,DONE\n";
  EXPECT_THROW(run_search(plan), Error);
}

TEST(SearchRun, LearnsFromTheEarlierSearchOfItsOwnFolder) {
  const TempDir folder;
  auto plan = plan_in(folder, [](RunningJob& job) { return RunResult(value_of(job)); });
  EXPECT_EQ(run_search(plan).evaluations, 12);
  plan.warm_start = plan.log_dir / "results.csv";  // which is moved aside
  EXPECT_EQ(run_search(plan).evaluations, 12);
  // A file that cannot be used is said before anything is moved.
  plan.warm_start = plan.log_dir / "result.csv";
  EXPECT_THROW(run_search(plan), Error);
  EXPECT_EQ(read_results(plan.log_dir).rows.size(), 12U);
}

TEST(SearchRun, UsesKnownResultsWhenAsked) {
  const TempDir folder;
  int runs = 0;
  auto plan = plan_in(folder, [&](RunningJob& job) {
    ++runs;
    return RunResult(job["x"].as_number());
  });
  plan.space = search::Space::Builder().add("x", search::integer(0, 2)).build();
  plan.algorithm.name = "random";
  plan.cache_key = "to_dict";
  const auto summary = run_search(plan);
  EXPECT_EQ(summary.evaluations, 12);
  EXPECT_LE(runs, 3);
  EXPECT_EQ(summary.cached, 12 - runs);
}

TEST(SearchRun, MovesAnEarlierSearchAside) {
  const TempDir folder;
  const auto run = [](RunningJob& job) { return RunResult(value_of(job)); };
  run_search(plan_in(folder, run));
  run_search(plan_in(folder, run));
  EXPECT_EQ(read_results(folder.path() / "log").rows.size(), 12U);
  int earlier = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "log"))
    if (entry.path().filename().string().starts_with("earlier-")) {
      ++earlier;
      EXPECT_EQ(read_results(entry.path()).rows.size(), 12U);
    }
  EXPECT_EQ(earlier, 1);
}

TEST(SearchRun, ASearchThatNeverBeganIsInNobodysWay) {
  const TempDir folder;
  auto plan = plan_in(folder, [](RunningJob& job) { return RunResult(value_of(job)); });
  std::filesystem::create_directories(plan.log_dir);
  std::ofstream(plan.log_dir / "init_infos.json") << R"({"kolo_search": 1, "problem": "other"})";
  plan.resume = true;
  EXPECT_THROW(run_search(plan), Error);
  plan.resume = false;
  EXPECT_EQ(run_search(plan).evaluations, 12);
}

TEST(SearchRun, AJobContinuesTheSearchThatItBegan) {
  const TempDir folder;
  int runs = 0;
  const auto run = [&](RunningJob& job) {
    ++runs;
    return RunResult(value_of(job));
  };
  const auto as_job = [&](const char* id, std::uint64_t seed) {
    ::setenv("KOLO_DB", folder.path().c_str(), 1);
    ::setenv("KOLO_JOB_ID", id, 1);
    auto plan = plan_in(folder, run);
    plan.seed = seed;
    plan.max_evals += runs;
    run_search(plan);
    ::unsetenv("KOLO_DB");
    ::unsetenv("KOLO_JOB_ID");
    return read_results(folder.path() / "log").rows.size();
  };
  EXPECT_EQ(as_job("7", 1), 12U);
  EXPECT_EQ(as_job("7", 1), 24U);  // the next allocation
  EXPECT_EQ(runs, 24);
  runs = 0;
  EXPECT_EQ(as_job("8", 1), 12U);  // another job begins anew
  runs = 0;
  EXPECT_EQ(as_job("8", 2), 12U);  // and so does the same one with another search
}

TEST(SearchRun, GivesUpWhenEverythingFails) {
  const TempDir folder;
  auto plan = plan_in(folder, [](RunningJob&) { return RunResult("F_memory"); });
  plan.algorithm.name = "random";
  plan.max_evals = 10'000;
  auto summary = run_search(plan);
  EXPECT_TRUE(summary.gave_up);
  EXPECT_GE(summary.failures, 20);
  EXPECT_LT(summary.failures, 300);
  EXPECT_EQ(summary.first_error, "F_memory");
  // It may be resumed when the cause is gone, and then one failure more is nothing.
  plan.resume = true;
  plan.max_evals = summary.evaluations + 30;
  plan.run_function = [](RunningJob& job) { return RunResult(value_of(job)); };
  summary = run_search(plan);
  EXPECT_FALSE(summary.gave_up);
  EXPECT_TRUE(summary.best.has_value());
  plan = plan_in(folder, plan.run_function);
  plan.max_failures = 0;
  plan.max_evals = 40;
  plan.run_function = [](RunningJob&) { return RunResult("F_memory"); };
  EXPECT_EQ(run_search(plan).failures, 40);
}

TEST(SearchRun, ValuesThatAreNotFiniteAreFailuresEverywhere) {
  const TempDir folder;
  class Counts final : public tune::Observer {
   public:
    void on_trial_complete(const tune::TrialInfo&) override { ++complete; }
    void on_trial_error(const tune::TrialInfo&) override { ++failed; }
    void on_step(const std::function<tune::StudyView(std::size_t)>&) override {}
    void on_end(const std::function<tune::StudyView(std::size_t)>&) override {}
    int complete = 0, failed = 0;
  };
  const auto counts = std::make_shared<Counts>();
  auto plan = plan_in(folder, [](RunningJob& job) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double values[] = {1, std::nan(""), kInfinity, -kInfinity};
    return RunResult(values[job.id() % 4]);
  });
  plan.observers = {counts};
  const auto summary = run_search(plan);
  EXPECT_EQ(summary.failures, 9);
  EXPECT_EQ(counts->failed, 9);
  EXPECT_EQ(counts->complete, 3);
  EXPECT_EQ(summary.best.value().objectives.at(0), 1);
  for (const auto& row : read_results(folder.path() / "log").rows)
    EXPECT_EQ(row.failure, row.failed() ? "F_nan" : "");
}

TEST(SearchRun, ProgramsMayGiveSeveralObjectivesAndFurtherMetrics) {
  for (const char* output :
       {"DH-OUTPUT: [{x}, 1]", "DH-OUTPUT: ({x}, 1)", "[{x}, 1]", R"({"objective": [{x}, 1]})",
        R"({"objective_0": {x}, "objective_1": 1, "accuracy": 0.5})"}) {
    const TempDir folder;
    auto plan = plan_in(folder, {});
    plan.evaluator.method = "process";
    plan.is_users_program = true;
    plan.objectives = 2;
    plan.algorithm.name = "random";
    plan.command = {"/bin/echo", output};
    plan.max_evals = 3;
    const auto summary = run_search(plan);
    EXPECT_EQ(summary.failures, 0) << output;
    const auto table = read_results(folder.path() / "log");
    for (const auto& row : table.rows) {
      ASSERT_EQ(row.objectives.size(), 2U) << output;
      EXPECT_EQ(row.objectives[0], row.parameters.at_path("x").as_number());
    }
    EXPECT_GE(summary.front.size(), 1U);
    EXPECT_EQ(summary.front[0].objectives[0], summary.best->objectives[0]);
    const bool has_more = std::string_view(output).find("accuracy") != std::string_view::npos;
    EXPECT_EQ(table.metadata.size(), has_more ? 3U : 2U) << "m:error, m:other and m:accuracy";
  }
}

TEST(SearchRun, MetricsMayBeCalledAsColumnsOfKolo) {
  const TempDir folder;
  auto plan = plan_in(folder, {});
  plan.evaluator.method = "process";
  plan.is_users_program = true;
  plan.algorithm.name = "random";
  plan.command = {"/bin/sh", "-c",
                  R"(o=0.5; case "$KOLO_TRIAL_ID" in *_00002) o=NaN ;; esac; echo "{\"objective\":)"
                  R"( $o, \"error\": 0.25, \"error_\": 1, \"other\": {\"a\": 2},)"
                  R"( \"timestamp_submit\": 5, \"timestamp_gather\": 6, \"job_id\": 7,)"
                  R"( \"metadata\": 8}")"};
  plan.max_evals = 3;
  auto summary = run_search(plan);
  EXPECT_EQ(summary.evaluations, 3);
  EXPECT_EQ(summary.failures, 1);
  EXPECT_EQ(summary.first_error, "F_nan");
  plan.resume = true;
  plan.max_evals = 4;
  summary = run_search(plan);
  EXPECT_EQ(summary.evaluations, 4);
  const auto table = read_results(folder.path() / "log");
  ASSERT_EQ(table.rows.size(), 4U);
  for (const auto& row : table.rows) {
    EXPECT_EQ(row.metadata.at("error_"), Value(0.25));
    EXPECT_EQ(row.metadata.at("error__"), Value(1));
    EXPECT_EQ(row.metadata.at("other_"), Value(Value::Dict{{"a", 2}}));
    EXPECT_EQ(row.metadata.at("timestamp_submit_"), Value(5));
    EXPECT_EQ(row.metadata.at("timestamp_gather_"), Value(6));
    EXPECT_EQ(row.metadata.at("job_id"), Value(7));
    EXPECT_EQ(row.metadata.at("metadata"), Value(8));
    EXPECT_LT(row.submitted, 5);
  }
}

TEST(SearchRun, SaysWhyAResultCannotBeRead) {
  const auto first_error = [](const std::string& script) {
    const TempDir folder;
    auto plan = plan_in(folder, {});
    plan.evaluator.method = "process";
    plan.is_users_program = true;
    plan.algorithm.name = "random";
    plan.command = {"/bin/sh", "-c", script};
    plan.max_evals = 1;
    return run_search(plan).first_error;
  };
  EXPECT_NE(first_error("printf '{\"objective\": 1, \"a\": \"%0100000d\"}\\n' 0").find("64 KiB"),
            std::string::npos);
  EXPECT_EQ(first_error("printf '%0100000d\\n1\\n' 0"), "");
  const std::string deep = std::string(150, '[') + std::string(150, ']');
  for (const std::string& line :
       {"echo '{\"objective\": 1, \"deep\": " + deep + "}'",
        "echo '{\"objective\": 1, \"deep\": " + deep + "}' >&$KOLO_TRIAL_FD"})
    EXPECT_NE(first_error(line).find("nested more than 100 deep"), std::string::npos) << line;
}

TEST(SearchRun, MistakesInTheProgramAreFoundBeforeTheFirstEvaluation) {
  const TempDir folder;
  auto plan = plan_in(folder, {});
  plan.evaluator.method = "process";
  plan.is_users_program = true;
  const auto refusal = [&](std::vector<std::string> command) {
    plan.command = std::move(command);
    try {
      run_search(plan);
    } catch (const Error& error) {
      EXPECT_FALSE(std::filesystem::exists(plan.log_dir)) << "a folder was made";
      return error.message();
    }
    return std::string();
  };
  EXPECT_NE(refusal({"/no/such/program"}).find("/no/such/program"), std::string::npos);
  EXPECT_NE(refusal({"/bin/echo", "{xx}"}).find("did you mean 'x'"), std::string::npos);
  plan.command = {"/bin/echo", "{x}"};
  plan.evaluator.num_gpus_per_task = 1000;
  EXPECT_THROW(run_search(plan), Error);
}

TEST(SearchRun, EvaluationsOfAnEarlierSessionWouldBeWaitedFor) {
  // Every process of a search holds the lock of the study's directory, which the next session
  // waits for. An evaluation sees whether it is taken: 1 if it is.
  const TempDir folder;
  auto plan = plan_in(folder, {});
  plan.evaluator.method = "process";
  plan.is_users_program = true;
  plan.command = {"/bin/sh", "-c",
                  "if flock -n \"$KOLO_TRIAL_DIR/..\" true; then echo 0; else echo 1; fi"};
  plan.max_evals = 2;
  const auto summary = run_search(plan);
  EXPECT_EQ(summary.evaluations, 2);
  EXPECT_EQ(summary.failures, 0);
  for (const auto& row : read_results(folder.path() / "log").rows)
    EXPECT_EQ(row.objectives.at(0), 1) << "no process of the search holds the lock";
}

TEST(SearchRun, RefusesPlansThatCannotBe) {
  const TempDir folder;
  const auto run = [](RunningJob&) { return RunResult(1.0); };
  auto plan = plan_in(folder, run);
  plan.evaluator.method = "cloud";
  EXPECT_THROW(run_search(plan), Error);
  plan = plan_in(folder, run);
  plan.evaluator.num_ranks_per_node = 2;
  EXPECT_THROW(run_search(plan), Error);
  plan = plan_in(folder, run);
  plan.max_evals = 0;
  EXPECT_THROW(run_search(plan), Error);
  plan = plan_in(folder, run);
  plan.cache_key = "md5";
  EXPECT_THROW(run_search(plan), Error);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "log"));
}

}  // namespace
}  // namespace kolo::hps
