// The commands around studies, as people type them.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "integration/tune/cli_fixture.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST_F(TuneCli, TheLastLineOfOutputIsAResult) {
  const auto result =
      tune({"--metric", "loss", "--mode", "min", "--num-samples", "3", "--name", "last"},
           {"sh", "-c", "echo working; echo loss=$1 other=7", "sh", "{x}"});
  ASSERT_TRUE(result.ok()) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("best: loss"));
  const Json all = trials("last");
  ASSERT_EQ(all.size(), 6U);
  for (const auto& trial : all) {
    EXPECT_EQ(trial["loss"], trial["config/x"]);
    EXPECT_EQ(trial["other"], 7);
    EXPECT_EQ(trial["status"], "TERMINATED");
  }
}

TEST_F(TuneCli, ParametersComeAsArgumentsVariablesAndAFile) {
  const auto result =
      tune({"--name", "ways", "--metric", "same", "--mode", "max"},
           {"sh", "-c",
            "test \"$1\" = \"$KOLO_PARAM_KIND\" && grep -q \"\\\"kind\\\": \\\"$1\\\"\" "
            "$KOLO_TRIAL_CONFIG && test -d \"$2\" && echo '{\"same\": 1}' >&$KOLO_TRIAL_FD",
            "sh", "{kind}", "{trial_dir}"});
  ASSERT_TRUE(result.ok()) << result.errors << result.output;
  EXPECT_EQ(trials("ways").size(), 2U);
}

TEST_F(TuneCli, KoloReportTellsWhetherToGoOn) {
  const auto script =
      write("train.sh",
            "i=0\nwhile [ $i -lt 50 ]; do i=$((i+1))\n"
            "kolo report loss=$KOLO_PARAM_X epoch=$i || { echo told; exit 0; }\ndone\n");
  const auto result = tune({"--metric", "loss", "--mode", "min", "--stop", "training_iteration=3",
                            "--name", "shell", "--num-samples", "1"},
                           {"sh", script.string()});
  ASSERT_TRUE(result.ok()) << result.errors;
  const Json all = trials("shell");
  ASSERT_EQ(all.size(), 2U);
  for (const auto& trial : all) EXPECT_EQ(trial["training_iteration"], 3);
}

TEST_F(TuneCli, ATrialCanBeSeveralRanks) {
  const auto script = write("rank.sh", "kolo report size=$KOLO_SIZE rank=$KOLO_RANK\n");
  const auto result = tune({"--np", "2", "--metric", "size", "--mode", "max", "--name", "ring"},
                           {"sh", script.string()});
  ASSERT_TRUE(result.ok()) << result.errors;
  for (const auto& trial : trials("ring")) {
    EXPECT_EQ(trial["size"], 2);
    EXPECT_EQ(trial["rank"], 0);
    EXPECT_EQ(trial["training_iteration"], 1);
  }
}

TEST_F(TuneCli, AnSshThatEndsAtOnceIsSaid) {
  ::setenv("KOLO_SSH", "/bin/false", 1);
  for (int i = 0; i < 8; ++i) {  // it ends before, while or after it is written to
    const auto result = tune({"--hosts", "first:1,second:1,third:1", "--metric", "loss", "--mode",
                              "min", "--name", "nobody"},
                             {"true"});
    EXPECT_TRUE(WIFEXITED(result.status)) << "ended by signal " << WTERMSIG(result.status);
    EXPECT_EQ(WEXITSTATUS(result.status), 1);
    EXPECT_THAT(result.errors, HasSubstr(": false exited with status 1"));
  }
}

TEST_F(TuneCli, ATrialWaitsForAHostThatIsAwayForAMoment) {
  write("space.yaml", "x: {uniform: [0, 1]}\n");
  stand_in_for_ssh_that_fails_once();
  const auto result =
      tune({"--hosts", "me@away:1", "--metric", "loss", "--mode", "min", "--name", "away"},
           {"sh", "-c", std::string(kDiesOnce) + "echo >>$ONCE/runs; kolo report loss=1"});
  EXPECT_TRUE(result.ok()) << result.errors;
  EXPECT_EQ(trials("away")[0]["status"], "TERMINATED") << trials("away")[0]["error"];
  EXPECT_EQ(read_file(scratch_.path() / "once/runs"), "\n");
  EXPECT_EQ(read_file(scratch_.path() / "calls"), "\n\n\n");
}

TEST_F(TuneCli, AFileDescribesAWholeStudy) {
  const auto file =
      write("study.yaml",
            "name: whole\nspace: {x: {choice: [1, 2, 3, 4, 5, 6]}}\nmetric: y\nmode: max\n"
            "num_samples: 8\nsearch: {name: tpe, settings: {n_startup: 3}}\n"
            "scheduler: asha:max_t=5\nprogram: [sh, -c, 'echo y=$KOLO_PARAM_X']\n");
  const auto result = kolo({"tune", file.string(), "--json"});
  ASSERT_TRUE(result.ok()) << result.errors;
  int completed = 0;
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);)
    completed += parse_json(line, "event")["event"] == "trial_complete" ? 1 : 0;
  EXPECT_EQ(completed, 8);
  const auto best = kolo({"best", "whole", "--json"});
  EXPECT_EQ(parse_json(best.output, "best")["config"]["x"], 6) << best.output;
}

TEST_F(TuneCli, LooksAtStudies) {
  ASSERT_TRUE(tune({"--metric", "loss", "--mode", "min", "--num-samples", "4", "--name", "seen"},
                   {"sh", "-c", "echo loss=$KOLO_PARAM_X"})
                  .ok());
  EXPECT_THAT(kolo({"studies"}).output, testing::AllOf(HasSubstr("seen"), HasSubstr("finished")));
  const auto sorted = kolo({"trials", "seen", "--sort", "loss", "--desc", "--columns", "loss,kind",
                            "--filter", "kind == a", "--limit", "3", "--csv"});
  std::istringstream lines(sorted.output);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "loss,config/kind");
  double before = 2;
  int count = 0;
  while (std::getline(lines, line)) {
    EXPECT_LE(std::stod(line), before);
    before = std::stod(line);
    EXPECT_THAT(line, testing::EndsWith(",a"));
    ++count;
  }
  EXPECT_EQ(count, 3);
  const auto file = (scratch_.path() / "all.json").string();
  ASSERT_TRUE(kolo({"export", "seen", "-o", file}).ok());
  EXPECT_EQ(parse_json(read_file(file), file).size(), 8U);
  EXPECT_EQ(kolo({"trials", "sean"}).status >> 8, 1);
  EXPECT_THAT(kolo({"trials", "sean"}).errors, HasSubstr("did you mean 'seen'?"));
  EXPECT_EQ(kolo({"trials", "seen", "--sort", "los"}).status >> 8, 2);
}

TEST_F(TuneCli, ResumesAndExtends) {
  ASSERT_TRUE(tune({"--metric", "loss", "--mode", "min", "--num-samples", "2", "--name", "more"},
                   {"sh", "-c", "echo loss=$KOLO_PARAM_X"})
                  .ok());
  EXPECT_EQ(trials("more").size(), 4U);
  const auto again = kolo({"resume", "more", "--num-samples", "5"});
  ASSERT_TRUE(again.ok()) << again.errors;
  EXPECT_EQ(trials("more").size(), 10U);
  EXPECT_EQ(tune({"--name", "more"}, {"true"}).status >> 8, 1);  // the name is taken
}

TEST_F(TuneCli, StopsAStudyAndATrial) {
  SpawnOptions options;
  options.argv = {KOLO_BINARY,
                  "tune",
                  "--space",
                  (scratch_.path() / "space.yaml").string(),
                  "--name",
                  "long",
                  "--metric",
                  "loss",
                  "--mode",
                  "min",
                  "--json",
                  "--",
                  "sh",
                  "-c",
                  "kolo report loss=1; sleep 60"};
  options.environment = current_environment();
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd from(ends[0]);
  Fd to(ends[1]);
  options.standard_output = to.get();
  const pid_t study = spawn(options);
  to.reset();
  EXPECT_TRUE(wait_for_event(from.get(), "trial_result"));
  ASSERT_TRUE(kolo({"stop", "long", "0"}).ok());
  EXPECT_TRUE(wait_for_event(from.get(), "trial_complete"));
  EXPECT_EQ(trials("long")[0]["status"], "TERMINATED");
  ASSERT_TRUE(kolo({"stop", "long"}).ok());
  int status = 0;
  ASSERT_EQ(::waitpid(study, &status, 0), study);
  EXPECT_EQ(exit_code_of(status), 130);
  EXPECT_THAT(kolo({"studies"}).output, HasSubstr("stopped"));
  EXPECT_EQ(kolo({"stop", "long"}).status >> 8, 1);
}

TEST_F(TuneCli, SaysWhatIsWrong) {
  EXPECT_THAT(tune({"--metric", "loss", "--mode", "low"}, {"true"}).errors,
              HasSubstr("min or max"));
  EXPECT_THAT(tune({"--search", "tpx", "--metric", "a", "--mode", "min"}, {"true"}).errors,
              HasSubstr("did you mean 'tpe'?"));
  EXPECT_THAT(tune({}, {"no-such-program"}).errors, HasSubstr("no such program"));
  EXPECT_THAT(tune({"--cpus", "1000"}, {"true"}).errors, HasSubstr("could never start"));
  EXPECT_EQ(kolo({"tune", "--space", "nowhere.yaml", "--", "true"}).status >> 8, 1);
  EXPECT_THAT(kolo({"report", "loss=1"}).errors, HasSubstr("not a trial"));
  const auto typo = tune({"--name", "typo"}, {"echo", "{y}"});
  EXPECT_EQ(typo.status >> 8, 2);
  EXPECT_THAT(typo.errors, HasSubstr("placeholder 'y' is unknown; did you mean 'x'?"));
  EXPECT_THAT(kolo({"studies"}).errors, HasSubstr("kolo.db"));  // nothing was begun
}

TEST_F(TuneCli, OneTrialIsOne) {
  const auto space = write("one.yaml", "x: {uniform: [0, 1]}\n");
  const auto failed = kolo(
      {"tune", "--space", space.string(), "--name", "one", "--num-samples", "1", "--", "false"});
  EXPECT_EQ(failed.status >> 8, 1);
  EXPECT_THAT(failed.errors, HasSubstr("1 of 1 trial failed; the first error: "));
}

TEST_F(TuneCli, APageShowsTheStudyWithoutANetwork) {
  ASSERT_TRUE(tune({"--metric", "loss", "--mode", "min", "--num-samples", "10", "--name", "page"},
                   {"sh", "-c", "kolo report loss=1; kolo report loss=$KOLO_PARAM_X"})
                  .ok());
  const auto page = (scratch_.path() / "report.html").string();
  ASSERT_TRUE(kolo({"report-html", "page", "-o", page}).ok());
  const std::string html = read_file(page);
  EXPECT_EQ(html.find("http://"), html.find("http://www.w3.org/2000/svg"));
  EXPECT_EQ(html.find("https://"), std::string::npos);
  if (!std::filesystem::exists("/usr/bin/chromium")) GTEST_SKIP() << "chromium is not installed";
  const auto seen = run_command(
      {"/usr/bin/chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
       "--disable-background-networking", "--disable-component-update", "--disable-sync",
       "--user-data-dir=" + (scratch_.path() / "browser").string(), "--virtual-time-budget=2000",
       "--dump-dom", "file://" + page},
      Deadline::after(50s));
  ASSERT_TRUE(seen.ok()) << seen.errors;
  const auto shows = [&](const std::string& text) {
    return seen.output.find(text) != std::string::npos;
  };
  EXPECT_TRUE(shows("data-ready=\"yes\""));
  EXPECT_TRUE(shows("data-rows=\"20\""));
  for (const char* id : {"history", "curves", "parallel", "importance", "timeline"})
    EXPECT_TRUE(shows(fmt::format("<div id=\"{}\"><svg", id))) << id;
  EXPECT_TRUE(shows("<div id=\"slices\"><div class=\"small\">"));
  EXPECT_TRUE(shows("kolo report loss=1"));  // the program
}

}  // namespace
}  // namespace kolo::test
