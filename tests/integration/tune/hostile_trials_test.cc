// Trials that do what no trial should: a study, its files and its user's files outlive them.
#include <sys/stat.h>

#include "integration/tune/cli_fixture.h"

namespace kolo::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class HostileTrial : public TuneCli {
 protected:
  HostileTrial() { write("space.yaml", "x: {uniform: [0, 1]}\n"); }
  /// A study of one trial that is this shell script.
  CommandResult study(const std::string& script, std::vector<std::string> more = {}) {
    std::vector<std::string> options{"--name", "hostile", "--metric", "loss", "--mode", "min"};
    options.insert(options.end(), more.begin(), more.end());
    return tune(options, {"sh", "-c", script});
  }
};

TEST_F(HostileTrial, DoesNotMakeTheStudyRemoveTheUsersFiles) {
  const fs::path precious = scratch_.path() / "precious";
  fs::create_directory(precious);
  write("precious/file", "1");
  ::setenv("PRECIOUS", precious.c_str(), 1);
  const auto result = study(
      "mkdir -p $KOLO_TRIAL_DIR/old $KOLO_TRIAL_DIR/new; ln -s $PRECIOUS $KOLO_TRIAL_DIR/link\n"
      "for path in $PRECIOUS $KOLO_TRIAL_DIR $KOLO_TRIAL_DIR/link $KOLO_TRIAL_DIR/../../precious "
      "$KOLO_TRIAL_DIR/old $KOLO_TRIAL_DIR/new; do kolo report loss=1 --checkpoint $path; done",
      {"--keep-checkpoints", "1"});
  ASSERT_TRUE(result.ok()) << result.errors;
  EXPECT_TRUE(fs::exists(precious / "file"));
  const fs::path directory = trials("hostile")[0]["logdir"].get<std::string>();
  EXPECT_TRUE(fs::exists(directory / "params.json"));
  EXPECT_TRUE(fs::is_symlink(directory / "link"));
}

TEST_F(HostileTrial, LearnsNothingOfTheDatabaseNorDoOthers) {
  ::umask(022);
  const std::string url =
      "sqlite:///" + (scratch_.path() / "own.db").string() + "?synchronous=full";
  const auto result = study("kolo report loss=1", {"--storage", url});
  ASSERT_TRUE(result.ok()) << result.errors;
  // A URL may hold a password; whoever reads the database needs none of it.
  EXPECT_THAT(read_file(scratch_.path() / "own.db"), testing::Not(HasSubstr("synchronous=full")));
  for (const auto& entry : fs::directory_iterator(scratch_.path()))
    if (entry.path().filename().string().starts_with("own.db")) {
      EXPECT_EQ(entry.status().permissions() & (fs::perms::group_all | fs::perms::others_all),
                fs::perms::none)
          << entry.path();
    }
  EXPECT_TRUE(kolo({"resume", "hostile", "--storage", url}).ok());
}

TEST_F(HostileTrial, MayKeepItsCheckpointInOnePlace) {
  const auto result = study(
      "cd $KOLO_TRIAL_DIR; mkdir ckpt; for i in 1 2 3; do echo $i > ckpt/epoch; "
      "kolo report loss=1 --checkpoint ckpt; done\n"
      "test $(cat ckpt/epoch) = 3 && "
      "echo '{\"kolo\": 1, \"report\": {\"loss\": 1}, \"checkpoint\": \"ckpt\"}' >&$KOLO_TRIAL_FD",
      {"--keep-checkpoints", "1"});
  ASSERT_TRUE(result.ok()) << result.errors;
  const fs::path directory = trials("hostile")[0]["logdir"].get<std::string>();
  EXPECT_EQ(read_file(directory / "ckpt/epoch"), "3\n");
}

// Spreadsheets take what begins with = or @ for formulas, and a page takes <!--<script> for code.
TEST_F(HostileTrial, WritesNothingThatASpreadsheetOrAPageRuns) {
  const std::string name = "{{data}}<!--<script>";
  const auto result = tune({"--name", name, "--metric", "loss", "--mode", "min"},
                           {"sh", "-c",
                            "echo '{\"loss\": 1, \"note\": \"=cmd|calc\", \"@sum\": 2, \"html\": "
                            "\"<!--<script>\"}' >&$KOLO_TRIAL_FD"});
  ASSERT_TRUE(result.ok()) << result.errors;
  const std::string csv = kolo({"trials", name, "--csv"}).output;
  EXPECT_THAT(csv, testing::AllOf(HasSubstr(",'=cmd|calc"), HasSubstr(",'@sum")));
  EXPECT_THAT(csv, testing::Not(testing::AnyOf(HasSubstr(",=cmd"), HasSubstr(",@sum"))));
  const auto page = scratch_.path() / "report.html";
  ASSERT_TRUE(kolo({"report-html", name, "-o", page.string()}).ok());
  const std::string html = read_file(page);
  EXPECT_THAT(html, HasSubstr("{{data}}&lt;!--&lt;script&gt;"));
  EXPECT_THAT(html, testing::Not(HasSubstr("<!--<script>")));
}

TEST_F(HostileTrial, FailsAloneWhenItsJsonIsBeyondReason) {
  write("space.yaml", "kind: {grid_search: [large, deep, bytes, good]}\n");
  const auto result = study(
      "case $KOLO_PARAM_KIND in large) echo '{\"loss\": 1e999}' >&$KOLO_TRIAL_FD;;\n"
      "deep) printf '{\"loss\": %s' \"$(head -c 200000 /dev/zero | tr '\\0' '[')\" "
      ">&$KOLO_TRIAL_FD; "
      "echo >&$KOLO_TRIAL_FD;;\n"
      "bytes) printf 'oh \\377 no' >&2; exit 1;;\n"
      "good) kolo report loss=1; exit 0;; esac; sleep 60");
  EXPECT_THAT(result.output, HasSubstr("best: loss 1 ")) << result.errors;
  const Json all = trials("hostile");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_THAT(all[0]["error"], HasSubstr("what it sent cannot be understood"));
  EXPECT_THAT(all[1]["error"], HasSubstr("nested more than 200 deep"));
  EXPECT_THAT(all[2]["error"], HasSubstr("oh \uFFFD no"));
  EXPECT_EQ(all[3]["status"], "TERMINATED");
  const auto resumed = kolo({"resume", "hostile"});
  EXPECT_THAT(resumed.errors, HasSubstr("3 of 4 trials failed"));
  const auto page = (scratch_.path() / "report.html").string();
  EXPECT_TRUE(kolo({"report-html", "hostile", "-o", page}).ok());
}

/// One trial of the study does what a trial should.
constexpr const char* kOnly = "[ $KOLO_PARAM_KIND = good ] && { kolo report loss=1; exit 0; }\n";

TEST_F(HostileTrial, MayPutPipesInPlaceOfItsFiles) {
  write(
      "space.yaml",
      "kind: {grid_search: [error.txt, result.json, progress.csv, stderr, .params.json, good]}\n");
  const auto result = study(std::string(kOnly) +
                                "cd $KOLO_TRIAL_DIR; rm -f params.json $KOLO_PARAM_KIND\n"
                                "mkfifo $KOLO_PARAM_KIND; kolo report loss=2; exit 1",
                            {"--max-failures", "1"});
  EXPECT_THAT(result.output, HasSubstr("best: loss 1 ")) << result.errors;
  EXPECT_FALSE(result.ok());
  const Json all = trials("hostile");
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[5]["status"], "TERMINATED");
  EXPECT_THAT(kolo({"resume", "hostile"}).errors, HasSubstr("5 of 6 trials failed"));
}

TEST_F(HostileTrial, DoesNotMakeTheStudyWriteTheUsersFiles) {
  ::setenv("PRECIOUS", write("precious", "mine").c_str(), 1);
  write("space.yaml",
        "kind: {grid_search: [error.txt, result.json, progress.csv, .params.json, params.json]}\n");
  const auto result = study(
      "cd $KOLO_TRIAL_DIR; rm -f params.json $KOLO_PARAM_KIND; ln -s $PRECIOUS $KOLO_PARAM_KIND\n"
      "kolo report loss=2; exit 1",
      {"--max-failures", "1"});
  EXPECT_EQ(read_file(scratch_.path() / "precious"), "mine") << result.errors;
  for (const auto& trial : trials("hostile"))
    EXPECT_THAT(trial["error"], HasSubstr("the program exited with status 1"));
}

TEST_F(HostileTrial, DoesNotMakeAnotherFolderItsOwn) {
  const fs::path precious = scratch_.path() / "precious";
  fs::create_directories(precious / "one");
  fs::create_directories(precious / "two");
  fs::create_directories(precious / "checkpoint_000001");
  ::setenv("PRECIOUS", precious.c_str(), 1);
  const auto result = study(
      "mv $KOLO_TRIAL_DIR $KOLO_TRIAL_DIR.moved; ln -s $PRECIOUS $KOLO_TRIAL_DIR\n"
      "for name in one two three; do kolo report loss=1 --checkpoint $PRECIOUS/$name; done; exit 1",
      {"--keep-checkpoints", "1", "--max-failures", "1"});
  for (const char* name : {"one", "two", "checkpoint_000001"})
    EXPECT_TRUE(fs::exists(precious / name)) << name << ": " << result.errors;
  for (const char* name : {"result.json", "error.txt", "params.json"})
    EXPECT_FALSE(fs::exists(precious / name)) << name;
  EXPECT_THAT(trials("hostile")[0]["error"], HasSubstr("is no directory but a file, a link"));
}

TEST_F(HostileTrial, FailsAloneWhenItsDirectoryIsNone) {
  write("space.yaml", "kind: {grid_search: [touch, ln -s /nonexistent/x, mkfifo, good]}\n");
  const auto result =
      study(std::string(kOnly) + "rm -rf $KOLO_TRIAL_DIR; $KOLO_PARAM_KIND $KOLO_TRIAL_DIR; exit 1",
            {"--max-failures", "1"});
  EXPECT_THAT(result.output, HasSubstr("best: loss 1 ")) << result.errors;
  const Json all = trials("hostile");
  ASSERT_EQ(all.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_THAT(all[i]["error"], HasSubstr("is no directory but a file, a link")) << i;
}

TEST_F(HostileTrial, DoesNotKeepTheCheckpointsOfOthers) {
  write("space.yaml", "kind: {grid_search: [long, /, .., loop, good]}\n");
  const auto result = study(
      "cd $KOLO_TRIAL_DIR; path=$KOLO_PARAM_KIND; ln -s loop loop\n"
      "[ $path = long ] && path=$(printf 'a%.0s' $(seq 300))\n"
      "[ $path = good ] || { kolo report loss=2 --checkpoint $path; sleep 60; }\n"
      "for n in 1 2 3; do mkdir $n; kolo report loss=1 --checkpoint $n; done",
      {"--keep-checkpoints", "1", "--max-concurrent", "1"});
  EXPECT_THAT(result.output, HasSubstr("best: loss 1 ")) << result.errors;
  const Json all = trials("hostile");
  ASSERT_EQ(all.size(), 5U);
  const char* const reasons[] = {"no path that can be followed", "the whole study",
                                 "the whole study", "no path that can be followed"};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_THAT(all[i]["error"], HasSubstr(reasons[i])) << i;
  const fs::path good = all[4]["logdir"].get<std::string>();
  EXPECT_FALSE(fs::exists(good / "1"));
  EXPECT_FALSE(fs::exists(good / "2"));
  EXPECT_TRUE(fs::exists(good / "3"));
}

TEST_F(HostileTrial, LeavesAStudyThatCanBeShownAndCopied) {
  const auto result = study(
      "cd $KOLO_TRIAL_DIR; rm -f stdout; ln -s stdout stdout; ln -s nowhere gone; mkfifo pipe\n"
      "mkdir deep; ln -s . deep/again; echo 1 > deep/file; kolo report loss=1");
  ASSERT_TRUE(result.ok()) << result.errors;
  const auto page = kolo({"report-html", "hostile", "-o", (scratch_.path() / "r.html").string()});
  EXPECT_TRUE(page.ok()) << page.errors;
  const auto copy = kolo({"copy", "hostile", "other"});
  ASSERT_TRUE(copy.ok()) << copy.errors;
  const fs::path directory = trials("other")[0]["logdir"].get<std::string>();
  EXPECT_EQ(directory.parent_path().filename(), "other");
  EXPECT_EQ(read_file(directory / "deep/file"), "1\n");
  EXPECT_TRUE(fs::is_symlink(directory / "gone"));
  EXPECT_FALSE(fs::exists(directory / "pipe"));
}

TEST_F(HostileTrial, DoesNotEndOthersWithTheProcessThatWatchesThem) {
  write("space.yaml", "kind: {grid_search: [once, good]}\n");
  ::setenv("ONCE", (scratch_.path() / "once").c_str(), 1);
  const auto result =
      study(std::string(kOnly) + "mkdir $ONCE 2>/dev/null && kill -9 $PPID; kolo report loss=2");
  EXPECT_TRUE(result.ok()) << result.errors;
  for (const auto& trial : trials("hostile")) EXPECT_EQ(trial["status"], "TERMINATED");
}

TEST_F(HostileTrial, FailsWhenItEndsTheProcessThatWatchesItEachTime) {
  const auto result = study("kill -9 $PPID; sleep 60");
  EXPECT_FALSE(result.ok());
  const Json all = trials("hostile");
  EXPECT_EQ(all[0]["status"], "ERROR");
  EXPECT_THAT(all[0]["error"], HasSubstr("the process that starts and watches trials was lost"));
}

TEST_F(HostileTrial, LeavesNothingThatOthersMayRead) {
  ::umask(022);
  EXPECT_FALSE(study("echo secret >&2; exit 1").ok());
  const fs::path directory = trials("hostile")[0]["logdir"].get<std::string>();
  EXPECT_THAT(read_file(directory / "error.txt"), HasSubstr("secret"));
  EXPECT_EQ(fs::status(directory / "error.txt").permissions() &
                (fs::perms::group_all | fs::perms::others_all),
            fs::perms::none);
}

TEST_F(HostileTrial, FailsWithAnErrorThatCanBeRead) {
  write("space.yaml", "kind: {grid_search: [error, number, object]}\n");
  study(
      "{ case $KOLO_PARAM_KIND in error) printf '{\"kolo\": 1, \"error\": \"';; number) printf "
      "'[7';;\n"
      "object) printf '{\"kolo\": 1, \"';; esac\n"
      "head -c 5000000 /dev/zero | tr '\\0' 1; case $KOLO_PARAM_KIND in error) echo '\"}';;\n"
      "number) echo ']';; object) echo '\": 1}';; esac; } >&$KOLO_TRIAL_FD; exit 1");
  const Json all = trials("hostile");
  ASSERT_EQ(all.size(), 3U);
  for (const auto& trial : all) {
    EXPECT_EQ(trial["status"], "ERROR");
    EXPECT_LT(trial["error"].get<std::string>().size(), 20'000U);
  }
}

// On another host a trial reports through a file, and nothing slows it down.
TEST_F(HostileTrial, HoldsUpNobodyByReportingWithoutEnd) {
  write("space.yaml", "kind: {grid_search: [endless, good]}\n");
  stand_in_for_ssh();
  const auto result =
      study(std::string(kOnly) + "while :; do echo '{\"loss\": 2}'; done >>$KOLO_TRIAL_REPORTS",
            {"--hosts", "me@other:2", "--stop", "training_iteration=1000"});
  EXPECT_THAT(result.output, HasSubstr("best: loss 1 ")) << result.errors;
  const Json all = trials("hostile");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["training_iteration"], 1000);
  EXPECT_EQ(all[1]["status"], "TERMINATED");
}

TEST_F(HostileTrial, IsHeardToItsEndThoughItReportsAllAtOnce) {
  stand_in_for_ssh();
  const auto result =
      study("yes '{\"loss\": 2}' | head -n 10000 >>$KOLO_TRIAL_REPORTS", {"--hosts", "me@other:1"});
  EXPECT_TRUE(result.ok()) << result.errors;
  EXPECT_EQ(trials("hostile")[0]["training_iteration"], 10'000);
}

// A machine may give a process few descriptors, whatever it asks for.
TEST_F(HostileTrial, WaitsForDescriptors) {
  const std::string space = (scratch_.path() / "space.yaml").string();
  const auto result =
      run_command({"sh", "-c",
                   "ulimit -n 40; exec kolo tune --space " + space +
                       " --name few --metric loss --mode min --num-samples 24 --total-cpus 24 -- "
                       "sh -c 'kolo report loss=1; sleep 0.5; kolo report loss=2'"},
                  Deadline::after(std::chrono::seconds(60)));
  EXPECT_TRUE(result.ok()) << result.errors;
  for (const auto& trial : trials("few"))
    EXPECT_EQ(trial["status"], "TERMINATED") << trial["error"];
}

}  // namespace
}  // namespace kolo::test
