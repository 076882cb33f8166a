// Studies that are continued, looked at and managed, as people type it.
#include "integration/tune/cli_fixture.h"

namespace kolo::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class StudiesCli : public TuneCli {
 protected:
  /// A finished study of four trials with one parameter `lr`.
  void run_study(const std::string& name) {
    write("space.yaml", "lr: {uniform: [0, 1]}\n");
    const auto result = tune({"--metric", "loss", "--mode", "min", "--num-samples", "4", "--name",
                              name, "--search", "tpe"},
                             {"sh", "-c", "echo loss=$KOLO_PARAM_LR"});
    ASSERT_TRUE(result.ok()) << result.errors;
  }
  std::string state_of(const std::string& study) {
    const Json studies = parse_json(kolo({"studies", "--json"}).output, "studies");
    for (const Json& one : studies)
      if (one["name"] == study) return one["state"];
    return "";
  }
};

TEST_F(StudiesCli, AResumeWithAnotherSpaceIsRefusedAndHarmless) {
  run_study("b1");
  for (const char* space :
       {"momentum: {uniform: [0, 1]}\n", "lr: {uniform: [0, 1]}\nmomentum: {uniform: [0, 1]}\n"}) {
    write("space.yaml", space);
    const auto other = tune({"--metric", "loss", "--mode", "min", "--num-samples", "6", "--name",
                             "b1", "--search", "tpe", "--resume"},
                            {"sh", "-c", "echo loss=$KOLO_PARAM_MOMENTUM"});
    EXPECT_EQ(other.status >> 8, 1) << other.output;
    EXPECT_THAT(other.errors, HasSubstr("the parameter 'momentum' is new"));
    EXPECT_EQ(state_of("b1"), "finished");
  }
  const auto fewer = kolo({"resume", "b1", "--num-samples", "3"});
  EXPECT_EQ(fewer.status >> 8, 1);
  EXPECT_THAT(fewer.errors, HasSubstr("only 3 trials are asked for, but there are 4 already"));
  EXPECT_EQ(state_of("b1"), "finished");
  const auto plain = kolo({"resume", "b1", "--num-samples", "5"});
  EXPECT_TRUE(plain.ok()) << plain.errors;
  EXPECT_EQ(trials("b1").size(), 5U);
}

TEST_F(StudiesCli, WithoutADatabaseTheErrorSaysWhatMakesOne) {
  for (const char* command : {"studies", "best", "trials"})
    EXPECT_THAT(kolo({command}).errors,
                HasSubstr("kolo.db does not exist; `kolo tune` makes one, --storage and "))
        << command;
}

TEST_F(StudiesCli, AStudyThatCouldNotBeginLeavesNothing) {
  run_study("before");
  const auto result = tune({"--name", "never", "--executor", "jobs"}, {"true"});
  EXPECT_EQ(result.status >> 8, 1) << result.output;
  EXPECT_EQ(state_of("never"), "") << result.errors;
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "never"));
  EXPECT_EQ(state_of("before"), "finished");
}

TEST_F(StudiesCli, StudiesWithoutANameMayBeginInTheSameSecond) {
  for (int i = 0; i < 3; ++i) {
    const auto result = tune({"--metric", "loss", "--mode", "min"}, {"sh", "-c", "echo loss=1"});
    EXPECT_TRUE(result.ok()) << result.errors;
  }
  EXPECT_EQ(parse_json(kolo({"studies", "--json"}).output, "studies").size(), 3U);
  EXPECT_THAT(tune({"--resume"}, {"true"}).errors, HasSubstr("--resume needs --name"));
}

TEST_F(StudiesCli, ASpaceOfConstantsIsSaid) {
  write("space.yaml", "lr: [0.1, 0.2]\n");
  const auto several = tune({"--num-samples", "2"}, {"sh", "-c", "echo loss=1"});
  EXPECT_TRUE(several.ok()) << several.errors;
  EXPECT_THAT(several.output + several.errors, HasSubstr("nothing in the space varies"));
  const auto one = tune({}, {"sh", "-c", "echo loss=1"});
  EXPECT_THAT(one.output + one.errors, Not(HasSubstr("nothing in the space varies")));
}

TEST_F(StudiesCli, CommandsThatReadTakeTheNewestStudy) {
  EXPECT_THAT(kolo({"best"}).errors, HasSubstr("kolo.db"));
  run_study("older");
  run_study("newer");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"best"}, {"trials"}, {"export"}}) {
    auto named = command;
    named.emplace_back("newer");
    EXPECT_EQ(kolo(command).output, kolo(named).output) << command[0];
    EXPECT_THAT(kolo(command).output, Not(IsEmpty()));
  }
}

TEST_F(StudiesCli, AWiderSpaceAndAnotherSchedulerAreAppliedAndSaid) {
  run_study("wide");
  write("space.yaml", "lr: {uniform: [0, 100]}\n");
  const auto wider = tune({"--metric", "loss", "--mode", "min", "--num-samples", "12", "--name",
                           "wide", "--search", "random", "--scheduler", "asha", "--resume"},
                          {"sh", "-c", "echo loss=$KOLO_PARAM_LR"});
  ASSERT_TRUE(wider.ok()) << wider.errors;
  EXPECT_THAT(wider.errors, AllOf(HasSubstr("'lr' is now uniform(0, 100); it was uniform(0, 1)"),
                                  HasSubstr("the scheduler is now 'asha'; it was 'fifo'")));
  double highest = 0;
  for (const auto& trial : trials("wide"))
    highest = std::max(highest, trial["config/lr"].get<double>());
  EXPECT_GT(highest, 1);
}

TEST_F(StudiesCli, AMisspeltDomainIsAnError) {
  const std::pair<const char*, const char*> cases[] = {
      {"lr: {loguniforn: [1e-4, 1e-1]}\n", "did you mean 'loguniform'?"},
      {"lr: {loguniforn: {low: 1e-4, high: 1e-1}}\n", "did you mean 'loguniform'?"},
      {"lr: tune.loguniform(1e-4, 1e-1)\n", "{loguniform: [1e-4, 1e-1]}"},
      {"lr: {uniform: [0, 1], q: 0.1}\n", "'uniform' stands beside 'q'"}};
  for (const auto& [space, said] : cases) {
    write("space.yaml", space);
    const auto result =
        tune({"--metric", "loss", "--mode", "min", "--name", "bad"}, {"sh", "-c", "echo loss=1"});
    EXPECT_EQ(result.status >> 8, 2) << space;
    EXPECT_THAT(result.errors, HasSubstr(said));
  }
}

TEST_F(StudiesCli, FiltersAreReadWhollyOrRefused) {
  write("space.yaml", "lr: {choice: [0.001, 0.1]}\nbatch: {grid_search: [16, 32]}\n");
  ASSERT_TRUE(tune({"--metric", "loss", "--mode", "min", "--num-samples", "8", "--name", "rows"},
                   {"sh", "-c", "echo loss=$KOLO_PARAM_LR note=fine"})
                  .ok());
  const auto count = [&](const std::string& filter) {
    const auto result = kolo({"trials", "rows", "--json", "--filter", filter});
    EXPECT_TRUE(result.ok()) << filter << ": " << result.errors;
    return parse_json(result.output, "trials").size();
  };
  const auto all = trials("rows");
  const auto low = std::count_if(all.begin(), all.end(), [](const Json& trial) {
    return trial["config/lr"] == 0.001 && trial["config/batch"] == 32;
  });
  EXPECT_EQ(count("lr < 0.01 and batch = 32"), static_cast<std::size_t>(low));
  EXPECT_EQ(count("note == 'fine' and batch>=16"), 16U);
  EXPECT_EQ(count("loss == nan"), 0U);
  const std::pair<const char*, const char*> wrong[] = {
      {"lr << 0.01", "there is no operator '<<'"},
      {"lr < abc", "the column 'config/lr' has numbers, and 'abc' is none"},
      {"lr < 0.01 batch < 32", "is not one value"},
      {"lr <", "nothing follows '<'"},
      {"lr", "there is no comparison in it"},
      {"larning == 1", "column 'larning' is unknown"},
      {"lr < 1 or lr > 2", "is not one value"}};
  for (const auto& [filter, said] : wrong) {
    const auto result = kolo({"trials", "rows", "--filter", filter});
    EXPECT_EQ(result.status >> 8, 2) << filter << result.output;
    EXPECT_THAT(result.errors, HasSubstr(said));
  }
}

TEST_F(StudiesCli, TheBestIsShownWithTheValueItWasChosenFor) {
  write("space.yaml", "x: {grid_search: [1, 2]}\n");
  ASSERT_TRUE(tune({"--metric", "loss", "--mode", "min", "--name", "curve"},
                   {"sh", "-c", "for l in 5 0.$1 7; do kolo report loss=$l; done", "sh", "{x}"})
                  .ok());
  const auto text = kolo({"best", "curve", "--scope", "all"}).output;
  EXPECT_THAT(text, HasSubstr("loss       0.1 (best of 3 reports; the last is 7)"));
  const Json json = parse_json(kolo({"best", "curve", "--scope", "all", "--json"}).output, "best");
  EXPECT_EQ(json.value("value", 0.0), 0.1);
  EXPECT_EQ(json["result"]["loss"], 7);
  EXPECT_THAT(kolo({"best", "curve"}).output, HasSubstr("loss       7\n"));
}

TEST_F(StudiesCli, WithoutAFiniteValueThereIsNoBest) {
  const auto result =
      tune({"--metric", "loss", "--mode", "min", "--name", "nans"}, {"sh", "-c", "echo loss=nan"});
  EXPECT_EQ(result.status >> 8, 1);
  EXPECT_THAT(result.output, Not(HasSubstr("best")));
  EXPECT_THAT(result.errors,
              HasSubstr("no trial has a finite value of 'loss'; all 2 that reported"));
  EXPECT_THAT(kolo({"best", "nans"}).errors, HasSubstr("no trial has a finite value"));
}

TEST_F(StudiesCli, AProgramThatIsEndedToBePausedHasNotFailed) {
  write("space.yaml", "x: {uniform: [0, 1]}\n");
  // After an answer other than "continue" it waits for the signal.
  const auto script = write("member.sh",
                            "for i in 1 2 3; do\n"
                            "  state=$KOLO_TRIAL_DIR/state.$i.$$\n"
                            "  mkdir $state\n"
                            "  kolo report loss=$KOLO_PARAM_X --checkpoint $state || sleep 60\n"
                            "done\n");
  const auto result =
      tune({"--metric", "loss", "--mode", "min", "--num-samples", "4", "--max-concurrent", "1",
            "--scheduler", "pbt:time_attr=training_iteration,perturbation_interval=1", "--stop",
            "training_iteration=3", "--name", "members"},
           {"sh", script.string()});
  EXPECT_TRUE(result.ok()) << result.errors;
  const auto members = trials("members");
  EXPECT_EQ(members.size(), 4U);
  for (const auto& trial : members) EXPECT_EQ(trial["status"], "TERMINATED");
}

TEST_F(StudiesCli, StudiesAreCopiedRenamedAndDeletedWithTheirFiles) {
  write("space.yaml", "x: {uniform: [0, 1]}\n");
  const auto script = write("save.sh",
                            "mkdir -p $KOLO_TRIAL_DIR/mine && echo 7 > $KOLO_TRIAL_DIR/mine/model\n"
                            "kolo report loss=$KOLO_PARAM_X --checkpoint $KOLO_TRIAL_DIR/mine\n");
  ASSERT_TRUE(tune({"--metric", "loss", "--mode", "min", "--num-samples", "2", "--name", "one"},
                   {"sh", script.string()})
                  .ok());
  write("one/notes.txt", "of the user");
  const auto ids = [&](const std::string& study) {
    std::vector<std::string> all;
    for (const auto& trial : trials(study)) {
      all.push_back(trial["trial_id"]);
      EXPECT_THAT(trial["logdir"].get<std::string>(), HasSubstr("/" + study + "/"));
    }
    return all;
  };
  const auto checkpoint = [&](const std::string& study) {
    const auto best = kolo({"best", study, "--json"});
    return std::filesystem::path(parse_json(best.output, "best")["checkpoint"].get<std::string>());
  };
  const auto before = ids("one");

  ASSERT_TRUE(kolo({"copy", "one", "two"}).ok());
  EXPECT_EQ(ids("two"), before);
  EXPECT_THAT(checkpoint("two").string(), HasSubstr("/two/"));
  EXPECT_EQ(read_file(checkpoint("two") / "model"), "7\n");
  const auto longer = kolo({"resume", "two", "--num-samples", "3"});
  EXPECT_TRUE(longer.ok()) << longer.errors;
  EXPECT_EQ(trials("two").size(), 3U);
  EXPECT_EQ(trials("one").size(), 2U);

  ASSERT_TRUE(kolo({"rename", "one", "three"}).ok());
  EXPECT_EQ(ids("three"), before);
  EXPECT_EQ(read_file(checkpoint("three") / "model"), "7\n");
  EXPECT_EQ(kolo({"trials", "one"}).status >> 8, 1);
  EXPECT_TRUE(std::filesystem::exists(scratch_.path() / "one/notes.txt"));
  EXPECT_THAT(kolo({"rename", "three", "two"}).errors, HasSubstr("there is a study 'two' already"));
  EXPECT_EQ(kolo({"copy", "three", "a/b"}).status >> 8, 2);

  const auto careful = kolo({"delete", "two"});
  EXPECT_EQ(careful.status >> 8, 2);
  EXPECT_THAT(careful.errors, HasSubstr("add --yes"));
  ASSERT_TRUE(kolo({"delete", "two", "three", "--yes"}).ok());
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "two"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "three"));
  EXPECT_THAT(kolo({"studies"}).output, Not(HasSubstr("three")));
  EXPECT_THAT(kolo({"delete", "two", "--yes"}).errors, HasSubstr("study 'two' is unknown"));
}

TEST_F(StudiesCli, ACopyThatFailsLeavesNothingAndARenamingNothingHalfMoved) {
  namespace fs = std::filesystem;
  write("space.yaml", "x: {uniform: [0, 1]}\n");
  ASSERT_TRUE(tune({"--metric", "loss", "--mode", "min", "--num-samples", "2", "--max-concurrent",
                    "1", "--name", "one"},
                   {"sh", "-c", "echo 7 > $KOLO_TRIAL_DIR/model; echo loss=1"})
                  .ok());
  std::vector<fs::path> folders;
  for (const auto& trial : trials("one")) folders.emplace_back(trial["logdir"].get<std::string>());
  ASSERT_EQ(folders.size(), 2U);
  const auto names = [](const fs::path& directory) {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(directory))
      all.push_back(entry.path().filename());
    return all;
  };
  const auto are_whole = [&] {
    for (const auto& folder : folders)
      if (!fs::exists(folder / "model")) return false;
    return true;
  };

  // A stranger's file has the name of the second folder.
  const std::string second = folders[1].filename();
  fs::create_directory(scratch_.path() / "taken");
  write("taken/" + second, "of the user");
  const auto onto = kolo({"copy", "one", "taken"});
  EXPECT_EQ(onto.status >> 8, 1);
  EXPECT_THAT(onto.errors, HasSubstr("had files of these names before"));
  EXPECT_THAT(names(scratch_.path() / "taken"), testing::ElementsAre(second));
  const auto renamed = kolo({"rename", "one", "taken"});
  EXPECT_EQ(renamed.status >> 8, 1);
  EXPECT_THAT(names(scratch_.path() / "taken"), testing::ElementsAre(second));
  EXPECT_TRUE(are_whole());
  EXPECT_EQ(read_file(scratch_.path() / "taken" / second), "of the user");

  // A path that is too long below a longer name.
  fs::path deep = folders[1];
  while (deep.string().size() < 3960) deep /= std::string(100, 'd');
  fs::create_directories(deep);
  const std::string longer(150, 'n');
  const auto failed = kolo({"copy", "one", longer});
  EXPECT_EQ(failed.status >> 8, 1);
  EXPECT_THAT(failed.errors, HasSubstr("nothing was copied"));
  EXPECT_FALSE(fs::exists(scratch_.path() / longer));
  EXPECT_THAT(kolo({"studies"}).output, Not(HasSubstr("nnnn")));
  EXPECT_TRUE(are_whole());
}

TEST_F(StudiesCli, TablesShowWhatMattersInShortLines) {
  write("space.yaml", "x: {grid_search: [1, 2]}\n");
  const auto result = tune({"--metric", "loss", "--mode", "max", "--name", "half"},
                           {"sh", "-c",
                            "test $KOLO_PARAM_X = 1 || { echo oh no >&2; exit 1; }; "
                            "echo loss=0.12345678"});
  EXPECT_EQ(result.status >> 8, 1);
  const auto text = kolo({"trials", "half"}).output;
  EXPECT_THAT(text, AllOf(HasSubstr("ERROR"), HasSubstr("error"),
                          HasSubstr("exited with status 1; it said: oh no"), HasSubstr("0.12346"),
                          Not(HasSubstr("/half/")), Not(HasSubstr("config/"))));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 150U) << line;
  EXPECT_THAT(kolo({"trials", "half", "--csv"}).output, HasSubstr("/half/"));
  const auto studies = kolo({"studies"}).output;
  EXPECT_THAT(studies, AllOf(HasSubstr("loss (max)"), HasSubstr("0.12346")));
  const auto sheet = kolo({"export", "half", "-o", (scratch_.path() / "a.xlsx").string()});
  EXPECT_EQ(sheet.status >> 8, 2);
  EXPECT_THAT(sheet.errors, HasSubstr("files of the kind '.xlsx' cannot be written"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "a.xlsx"));
}

TEST_F(StudiesCli, AStudyWhoseTrialsAllFailGivesUp) {
  write("space.yaml", "x: {uniform: [0, 1]}\n");
  const std::vector<std::string> program{"sh", "-c", "test -e go && echo loss=1"};
  const auto hopeless = tune({"--metric", "loss", "--mode", "min", "--num-samples", "100000",
                              "--max-concurrent", "2", "--give-up-after", "3", "--name", "never"},
                             program);
  EXPECT_EQ(hopeless.status >> 8, 1);
  EXPECT_THAT(hopeless.errors,
              HasSubstr("failed, so the study gave up (--give-up-after); the first error: the "
                        "program exited with status 1"));
  // Some are under way or ready to start when the last of the three is heard of.
  EXPECT_LE(trials("never").size(), 100U);
  // A success makes up for any number of failures.
  const auto some = tune({"--metric", "loss", "--mode", "min", "--num-samples", "6",
                          "--max-concurrent", "1", "--give-up-after", "2", "--name", "some"},
                         {"sh", "-c", "case {trial_id} in *0) echo loss=1 ;; *) exit 1 ;; esac"});
  EXPECT_EQ(trials("some").size(), 6U) << some.errors;
  // Also one of an earlier session.
  const auto more = kolo({"resume", "some", "--num-samples", "10"});
  EXPECT_EQ(trials("some").size(), 10U) << more.errors;
}

TEST_F(StudiesCli, SearchesHaveTunesNamesToo) {
  const auto result = tune({"--metric", "loss", "--mode", "min", "--name", "tunes", "--search",
                            "bayesopt", "--num-samples", "3"},
                           {"sh", "-c", "echo loss=$KOLO_PARAM_X"});
  EXPECT_TRUE(result.ok()) << result.errors;
}

TEST_F(StudiesCli, ATrialThatTakesTooLongSaysSo) {
  write("space.yaml", "x: 1\n");
  const auto result = tune({"--name", "slow", "--trial-time-limit", "0.2"}, {"sleep", "60"});
  EXPECT_EQ(result.status >> 8, 1);
  EXPECT_THAT(result.errors, HasSubstr("it ran longer than its limit of 0.2 s"));
}

}  // namespace
}  // namespace kolo::test
