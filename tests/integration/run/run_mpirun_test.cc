// Programs of kolo under mpirun, without kolo run: with MPI's plug-in and, meeting at rank 0,
// without it.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/env.h"
#include "base/files.h"
#include "kolo_process.h"

namespace kolo::test {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct Mpi {
  std::string name;
  std::vector<std::string> command;
};

class RunMpirunTest : public ::testing::TestWithParam<Mpi> {
 protected:
  void SetUp() override {
    try {
      find_program(GetParam().command[0], "/usr/bin:/bin:/usr/local/bin");
    } catch (const std::exception& error) {
      GTEST_SKIP() << error.what();
    }
  }

  /// Two ranks of run_rank; with the variables set through env, as their order in PATH is free.
  CommandResult run(const std::vector<std::string>& variables, const std::string& mode = "meet") {
    std::vector<std::string> argv = {"env", "KOLO_RENDEZVOUS_DIR=" + dir_.path().string()};
    argv.insert(argv.end(), variables.begin(), variables.end());
    argv.insert(argv.end(), GetParam().command.begin(), GetParam().command.end());
    argv.insert(argv.end(), {"-np", "2", KOLO_RANK_PROGRAM, mode});
    return run_command(argv, Deadline::after(kPatience));
  }

  TempDir dir_{"kolo-mpirun-test"};
};

TEST_P(RunMpirunTest, RanksMeetAtRankZero) {
  auto result = run({"KOLO_TRANSPORT=shm"});
  EXPECT_TRUE(result.ok()) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("rank 0 of 2, local 0 of 2, cross 0 of 1, sum 3"));
  EXPECT_THAT(result.output, HasSubstr("rank 1 of 2, local 1 of 2, cross 0 of 1, sum 3"));
  EXPECT_TRUE(fs::is_empty(dir_.path()));
}

TEST_P(RunMpirunTest, RanksMeetAtRankZeroAgainAndAgain) {
  auto result = run({"KOLO_TRANSPORT=shm"}, "again");
  EXPECT_TRUE(result.ok()) << result.errors;
}

TEST_P(RunMpirunTest, RanksMeetThroughMpiOrWithoutIt) {
  // With the plug-in if it was built; else at rank 0. Either way they meet.
  auto result = run({"KOLO_LOG_LEVEL=info"});
  EXPECT_TRUE(result.ok()) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("rank 1 of 2, local 1 of 2, cross 0 of 1, sum 3"));
  EXPECT_THAT(result.errors, HasSubstr("started by mpirun"));
}

/// `kolo run --mpi` with the mpirun of PATH.
TEST_P(RunMpirunTest, KoloRunNamesTheRanksForEveryProgram) {
  fs::create_directory(dir_.path() / "bin");
  const auto mpirun = dir_.path() / "bin/mpirun";
  write_file_atomically(mpirun, "#!/bin/sh\nexec " + GetParam().command[0] + " \"$@\"\n");
  fs::permissions(mpirun, fs::perms::owner_all);
  const std::string path = "PATH=" + (dir_.path() / "bin").string() + ":" +
                           environment("PATH").value_or("/usr/bin:/bin");
  const KoloProcess::Options options{.environment = {path, "KOLO_TRANSPORT=shm"}, .directory = {}};
  const auto named =
      run_kolo({"run", "--mpi", "-np", "2", "sh", "-c",
                "echo rank $KOLO_RANK of $KOLO_SIZE, local $KOLO_LOCAL_RANK of $KOLO_LOCAL_SIZE: "
                "\"$1\"",
                "sh", "$(touch oh-no); `x` \"q\" 'a b'"},
               options);
  EXPECT_EQ(named.status, 0) << named.err;
  EXPECT_THAT(named.out, HasSubstr("rank 0 of 2, local 0 of 2: $(touch oh-no); `x` \"q\" 'a b'"));
  EXPECT_THAT(named.out, HasSubstr("rank 1 of 2, local 1 of 2: $(touch oh-no); `x` \"q\" 'a b'"));
  const auto met = run_kolo({"run", "--mpi", "-np", "2", KOLO_RANK_PROGRAM, "meet"}, options);
  EXPECT_EQ(met.status, 0) << met.err;
  EXPECT_THAT(met.out, HasSubstr("rank 1 of 2, local 1 of 2, cross 0 of 1, sum 3"));
}

INSTANTIATE_TEST_SUITE_P(Mpis, RunMpirunTest,
                         ::testing::Values(Mpi{"OpenMpi",
                                               {"mpirun.openmpi", "--allow-run-as-root",
                                                "--oversubscribe", "-x", "KOLO_RENDEZVOUS_DIR",
                                                "-x", "KOLO_TRANSPORT", "-x", "KOLO_LOG_LEVEL"}},
                                           Mpi{"Mpich", {"mpirun.mpich"}}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kolo::test
