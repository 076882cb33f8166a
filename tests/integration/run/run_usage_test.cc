// Options, variables, files: what is understood, and one clear line for what is not.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "kolo_process.h"

namespace kolo::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using Arguments = std::vector<std::string>;

class RunUsageTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) {
    const auto path = dir_.path() / name;
    write_file_atomically(path, content);
    return path.string();
  }

  static void expect_refused(const Arguments& arguments, int status, const std::string& text,
                             KoloProcess::Options options = {}) {
    Finished run = run_kolo(arguments, std::move(options));
    const std::string what = ::testing::PrintToString(arguments);
    EXPECT_EQ(run.status, status) << what;
    EXPECT_EQ(run.out, "") << what;
    EXPECT_THAT(run.err, HasSubstr(text)) << what;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }

  /// What `echo $NAME` of each rank prints.
  static std::string ranks_see(const Arguments& options, const std::string& variables,
                               KoloProcess::Options process = {}) {
    Arguments arguments = {"run"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"sh", "-c", "echo " + variables});
    Finished run = run_kolo(arguments, std::move(process));
    EXPECT_EQ(run.status, 0) << run.err;
    std::string lines;
    for (const auto& line : sorted_lines(run.out)) lines += line + "\n";
    return lines;
  }

  TempDir dir_;
};

TEST_F(RunUsageTest, WrongUseIsOneLineAndTwo) {
  expect_refused({"run"}, 2, "PROGRAM is missing; usage: kolo run [OPTIONS] PROGRAM");
  expect_refused({"run", "-np", "2"}, 2, "PROGRAM is missing; usage: kolo run [OPTIONS] PROGRAM");
  expect_refused({"run", "true"}, 2, "the number of ranks is missing");
  expect_refused({"run", "-np", "0", "true"}, 2, "'0' is not a whole number");
  expect_refused({"run", "-np", "two", "true"}, 2, "'two' is not a whole number");
  expect_refused({"run", "-np"}, 2, "num-proc");
  expect_refused({"run", "--no-such", "-np", "1", "true"}, 2, "no option --no-such");
  expect_refused({"run", "--start-timout", "3", "-np", "1", "true"}, 2,
                 "did you mean --start-timeout?");
  expect_refused({"run", "-np", "3", "-H", "localhost:2", "true"}, 2, "2 slots");
  expect_refused({"run", "-np", "1", "-H", "localhost:x", "true"}, 2, "'localhost:x'");
  expect_refused({"run", "-np", "1", "-H", "-oProxyCommand=x", "true"}, 2, "not a host name");
  expect_refused({"run", "-np", "1", "-H", "fe80::1", "true"}, 2, "needs brackets");
  expect_refused({"run", "-np", "1", "--bind-to", "moon", "true"}, 2,
                 "must be core, socket or none, not 'moon'");
  expect_refused({"run", "-np", "1", "--transport", "pigeon", "true"}, 2, "known: auto, shm");
  expect_refused({"run", "-np", "1", "--transport", "shn", "true"}, 2, "did you mean 'shm'?");
  expect_refused({"run", "-np", "1", "--gloo", "--mpi", "true"}, 2, "exclude each other");
  expect_refused({"run", "-np", "1", "--log-level", "loud", "true"}, 2, "not 'loud'");
  expect_refused({"run", "-np", "1", "--ssh-port", "0", "true"}, 2, "ssh-port");
  expect_refused({"run", "-np", "1", "--start-timeout", "-1", "true"}, 2,
                 "'-1' is not a number from 0.001");
  expect_refused({"run", "-np", "1", "-x", "NO_SUCH_VARIABLE", "true"}, 2, "no such variable");
  expect_refused({"run", "-np", "1", "-x", "9X=1", "true"}, 2, "not the name of a variable");
  expect_refused({"run", "-np", "1", "-H", "localhost", "--hostfile", "x", "true"}, 2,
                 "exclude each other");
  expect_refused({"run", "-np", "1", "-H", "localhost", "--cluster", "lab", "true"}, 2,
                 "--cluster excludes --hosts");
  expect_refused({"run", "-np", "1", "--cluster-wait", "5", "true"}, 2, "name it with --cluster");
  expect_refused({"no-such-command"}, 2, "unknown");
  expect_refused({"list", "planets"}, 2, "transports");
}

TEST_F(RunUsageTest, MissingProgramsAreSaidBeforeAnythingStarts) {
  expect_refused({"run", "-np", "2", "no-such-program"}, 1, "no-such-program: no such program");
  expect_refused({"run", "-np", "2", "./no-such-program"}, 1, "no such program");
  expect_refused({"run", "-np", "2", file("plain", "text")}, 1, "not executable");
  expect_refused({"run", "-np", "2", dir_.path().string()}, 1, "no such program");
  // Found, executable, and yet nothing that the system can run.
  const std::string broken = file("broken",
                                  "\x7f"
                                  "ELF nonsense");
  std::filesystem::permissions(broken, std::filesystem::perms::owner_all);
  expect_refused({"run", "-np", "2", broken}, 1, "cannot run " + broken);
}

TEST_F(RunUsageTest, BadHostfileLinesAreNamed) {
  const std::string bad = file("bad", "# hosts\n\nlocalhost slots=2\nlocalhost slots=many\n");
  expect_refused({"run", "-np", "1", "--hostfile", bad, "true"}, 2, bad + ":4:");
  expect_refused({"run", "-np", "1", "--hostfile", file("empty", "# none\n"), "true"}, 2,
                 "there is no host in this file");
  expect_refused({"run", "-np", "1", "--hostfile", "/no/such/file", "true"}, 1, "no such file");
}

TEST_F(RunUsageTest, OptionsEndAtTheProgramsName) {
  Finished run = run_kolo({"run", "-np", "1", "echo", "-np", "7", "--verbose", "--help"});
  EXPECT_EQ(run.out, "[0]<stdout>:-np 7 --verbose --help\n");
  run = run_kolo({"run", "-np", "1", "--", "echo", "x"});
  EXPECT_EQ(run.out, "[0]<stdout>:x\n");
}

TEST_F(RunUsageTest, NothingIsInterpretedByAShell) {
  const std::string wild = "a b $HOME `x` ; | & ' \" * \\ \n z";
  Finished run = run_kolo({"run", "-np", "1", "-x", "WILD=" + wild, "sh", "-c",
                           "printf '%s|%s' \"$WILD\" \"$1\"", "sh", wild});
  std::string expected = wild + "|" + wild;
  for (std::size_t at = 0; (at = expected.find('\n', at)) != std::string::npos; at += 13)
    expected.insert(at + 1, "[0]<stdout>:");
  EXPECT_EQ(run.out, "[0]<stdout>:" + expected + "\n");
}

TEST_F(RunUsageTest, SpellingsOfTheNumberOfRanks) {
  const std::string expected = "[0]<stdout>:2\n[1]<stdout>:2\n";
  for (const Arguments& spelling : {Arguments{"-np", "2"},
                                    {"-np=2"},
                                    {"--num-proc", "2"},
                                    {"--num-proc=2"},
                                    {"-n", "2"},
                                    {"-H", "localhost:2"},
                                    {"-np", "2", "-H", "localhost:5"}})
    EXPECT_EQ(ranks_see(spelling, "$KOLO_SIZE"), expected) << ::testing::PrintToString(spelling);
}

TEST_F(RunUsageTest, FlagThenVariableThenFileThenDefault) {
  const std::string config = file("job.yaml",
                                  "num-proc: 1\nlog_level: error\n"
                                  "env:\n  A: from file\n");
  KoloProcess::Options variables{{"KOLO_LOG_LEVEL=info"}, "", false};
  EXPECT_EQ(ranks_see({"-np", "1"}, "${KOLO_LOG_LEVEL:-none}"), "[0]<stdout>:none\n");
  EXPECT_EQ(ranks_see({"--config-file", config}, "$KOLO_LOG_LEVEL $A"),
            "[0]<stdout>:error from file\n");
  EXPECT_EQ(ranks_see({"--config-file", config}, "$KOLO_LOG_LEVEL", variables),
            "[0]<stdout>:info\n");
  EXPECT_EQ(
      ranks_see({"--config-file", config, "--log-level", "fatal"}, "$KOLO_LOG_LEVEL", variables),
      "[0]<stdout>:fatal\n");
  KoloProcess::Options horovod{{"HOROVOD_LOG_LEVEL=debug"}, "", false};
  EXPECT_EQ(ranks_see({"--config-file", config}, "$KOLO_LOG_LEVEL", horovod),
            "[0]<stdout>:debug\n");
}

TEST_F(RunUsageTest, SettingsOfOperationsAsHorovodHasThem) {
  const std::string seen =
      "$KOLO_FUSION_THRESHOLD $KOLO_TIMELINE $KOLO_AUTOTUNE $KOLO_AUTOTUNE_LOG "
      "$KOLO_STALL_CHECK_TIME_SECONDS $KOLO_STALL_SHUTDOWN_TIME_SECONDS";
  const std::string expected = "[0]<stdout>:33554432 t.json 1 a.csv 7 9\n";
  EXPECT_EQ(
      ranks_see({"-np", "1", "--fusion-threshold-mb", "32", "--timeline-filename", "t.json",
                 "--autotune", "--autotune-log-file", "a.csv", "--stall-check-warning-time-seconds",
                 "7", "--stall-check-shutdown-time-seconds", "9"},
                seen),
      expected);
  const std::string horovod = file("all.yaml",
                                   "num-proc: 1\nparams:\n  fusion_threshold_mb: 32\n"
                                   "timeline:\n  filename: t.json\n"
                                   "autotune:\n  enabled: true\n  log_file: a.csv\n"
                                   "stall_check:\n  warning_time_seconds: 7\n"
                                   "  shutdown_time_seconds: 9\n");
  EXPECT_EQ(ranks_see({"--config-file", horovod}, seen), expected);
  EXPECT_EQ(ranks_see({"-np", "1", "--no-stall-check"}, "$KOLO_STALL_CHECK_DISABLE"),
            "[0]<stdout>:1\n");
}

TEST_F(RunUsageTest, FilesAreChecked) {
  expect_refused({"run", "--config-file", file("a.yaml", "num-prc: 1\n"), "true"}, 2,
                 "did you mean num-proc?");
  expect_refused({"run", "--config-file", file("b.yaml", "num-proc: many\n"), "true"}, 2,
                 "b.yaml: num-proc: 'many' is not a whole number");
  expect_refused({"run", "--config-file", file("c.yaml", "num-proc: [1]\n"), "true"}, 2,
                 "must be one value");
  expect_refused({"run", "--config-file", file("d.yaml", "- 1\n"), "true"}, 2, "a map");
  expect_refused({"run", "--config-file", "/no/such.yaml", "true"}, 1, "/no/such.yaml");
  Finished run = run_kolo({"run", "--config-file",
                           file("horovod.yaml", "num-proc: 1\nlogging:\n  level: INFO\n"), "true"});
  EXPECT_THAT(
      run.err,
      HasSubstr("logging.level: must be trace, debug, info, warning, error or fatal, not 'INFO'"));
}

TEST_F(RunUsageTest, VariablesForRanks) {
  KoloProcess::Options process{{"MINE=here"}, "", false};
  EXPECT_EQ(ranks_see({"-np", "1", "-x", "MINE", "-x", "B=1=2", "-x", "C="},
                      "\"$MINE $B ${C-unset}|\"", process),
            "[0]<stdout>:here 1=2 |\n");
  EXPECT_EQ(ranks_see({"-np", "2"},
                      "$KOLO_RANK $KOLO_SIZE $KOLO_LOCAL_RANK $KOLO_LOCAL_SIZE "
                      "$KOLO_CROSS_RANK $KOLO_CROSS_SIZE"),
            "[0]<stdout>:0 2 0 2 0 1\n[1]<stdout>:1 2 1 2 0 1\n");
  // A rank of something else that runs `kolo run` itself: its own place is not its ranks'.
  process.environment = {"OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_SIZE=9", "KOLO_RANK=4",
                         "PMI_RANK=1", "SLURM_PROCID=3"};
  EXPECT_EQ(ranks_see({"-np", "1"},
                      "$KOLO_RANK ${OMPI_COMM_WORLD_RANK-none} ${PMI_RANK-none} "
                      "${SLURM_PROCID-none}",
                      process),
            "[0]<stdout>:0 none none none\n");
}

TEST_F(RunUsageTest, ThreadsAreSharedOut) {
  KoloProcess::Options process{{"OMP_NUM_THREADS="}, "", false};
  const std::string cores = "$(nproc)";
  EXPECT_EQ(ranks_see({"-np", "1"}, "$(( OMP_NUM_THREADS == $(OMP_NUM_THREADS= nproc) ))", process),
            "[0]<stdout>:1\n");
  EXPECT_EQ(ranks_see({"-np", "1", "-x", "OMP_NUM_THREADS=77"}, "$OMP_NUM_THREADS", process),
            "[0]<stdout>:77\n");
  // Never less than one.
  Finished run = run_kolo({"run", "-np", "64", "sh", "-c", "echo $OMP_NUM_THREADS"}, process);
  EXPECT_THAT(run.out, HasSubstr("[63]<stdout>:"));
  EXPECT_EQ(run.out.find(":0\n"), std::string::npos);
}

TEST_F(RunUsageTest, VirtualRanksAndTheirThreadsDoNotDependOnTheRanks) {
  KoloProcess::Options process{{"OMP_NUM_THREADS="}, "", false};
  const std::vector<std::string> one{"-np", "1", "--virtual-ranks", "8"};
  EXPECT_EQ(ranks_see(one, "$KOLO_VIRTUAL_RANKS $OMP_NUM_THREADS", process), "[0]<stdout>:8 1\n");
  process.environment = {"OMP_NUM_THREADS=3", "KOLO_VIRTUAL_RANKS=4"};
  EXPECT_EQ(ranks_see({"-np", "1"}, "$KOLO_VIRTUAL_RANKS $OMP_NUM_THREADS", process),
            "[0]<stdout>:4 3\n");
  Finished run = run_kolo({"run", "-np", "3", "--virtual-ranks", "2", "true"});
  EXPECT_NE(run.status, 0);
  EXPECT_THAT(run.err, HasSubstr("2 virtual ranks cannot be shared out among 3 ranks"));
}

TEST_F(RunUsageTest, RanksAreBoundWhenAsked) {
  EXPECT_EQ(ranks_see({"-np", "2", "--bind-to", "core"},
                      "$(grep Cpus_allowed_list /proc/self/status | wc -l)"),
            "[0]<stdout>:1\n[1]<stdout>:1\n");
  Finished run = run_kolo({"run", "-np", "1", "--bind-to", "core", "nproc"});
  EXPECT_EQ(run.status, 0) << run.err;
}

TEST_F(RunUsageTest, InformationAboutItself) {
  EXPECT_THAT(run_kolo({"--version"}).out, StartsWith("kolo "));
  EXPECT_THAT(run_kolo({"info"}).out,
              ::testing::AllOf(HasSubstr("[X] shm"), HasSubstr("[X] SQLite      3.")));
  EXPECT_EQ(run_kolo({"run", "--check-build"}).out, run_kolo({"info"}).out);
  EXPECT_EQ(run_kolo({"run", "-cb"}).status, 0);
  // What is missing is said together with the packages that have it.
  EXPECT_THAT(run_kolo({"info"}, {.environment = {"PATH=/nonexistent"}, .directory = {}}).out,
              ::testing::AllOf(HasSubstr("[ ] srun        srun is not in PATH\n"),
                               ::testing::ContainsRegex("\n    apt-get install.* slurm-client")));
  // Without the package that has kolo-nas there is no libtorch, whatever kolo was built with.
  const auto alone = dir_.path() / "kolo";
  std::filesystem::copy_file(KOLO_PROGRAM, alone);
  EXPECT_THAT(run_command({alone.string(), "info"}, Deadline::after(kPatience)).output,
              ::testing::AllOf(HasSubstr("[ ] libtorch    the package kolo-torch has it"),
                               HasSubstr("[ ] kolo nas    needs libtorch\n")));
  EXPECT_THAT(run_kolo({"list", "transports"}).out, HasSubstr("shm+tcp"));
  EXPECT_THAT(run_kolo({"list", "samplers"}).out, HasSubstr("tpe "));
  EXPECT_THAT(run_kolo({"run", "--help"}).out, HasSubstr("--start-timeout SECONDS"));
  EXPECT_THAT(run_kolo({"--help"}).out, HasSubstr("run"));
  EXPECT_THAT(run_kolo({"manual", "analytics", "topk"}).out,
              StartsWith("## kolo analytics topk\n"));
  EXPECT_THAT(run_kolo({"completion", "bash"}).out, HasSubstr("complete -F"));
  expect_refused({"completion", "tcsh"}, 2, "must be bash, zsh or fish, not 'tcsh'");
  expect_refused({"manual", "custodian"}, 2, "command 'custodian' is unknown");
  expect_refused({"manual", "analytics", "tokp"}, 2, "did you mean 'topk'?");
  EXPECT_EQ(run_kolo({}).status, 2);
}

}  // namespace
}  // namespace kolo::test
