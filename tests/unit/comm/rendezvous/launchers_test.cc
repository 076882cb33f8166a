// What the environments of the launchers mean.
#include "comm/launchers.h"

#include <gmock/gmock.h>

#include <map>

#include "kolo/error.h"

namespace kolo::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Launched read(const Variables& variables) {
  return read_launcher([&](const char* name) -> std::optional<std::string> {
    auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

void expect_refused(const Variables& variables, const std::string& text) {
  try {
    read(variables);
    ADD_FAILURE() << "must throw: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

const Variables kKolo = {{"KOLO_RANK", "3"},
                         {"KOLO_SIZE", "5"},
                         {"KOLO_RANKS_PER_HOST", "2,2,1"},
                         {"KOLO_RENDEZVOUS", "10.0.0.1:4000"},
                         {"KOLO_SECRET_FD", "100"},
                         {"KOLO_CUSTODIAN_PID", "77"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}
Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(LaunchersTest, NothingMeansAlone) {
  EXPECT_EQ(read({}).launcher, Launcher::none);
  EXPECT_EQ(read({{"HOROVOD_RANK", "1"}, {"HOROVOD_SIZE", "2"}}).launcher, Launcher::none);
}

TEST(LaunchersTest, RanksThatKoloRunNamesForMpirunAreMpis) {
  const Variables variables = {{"KOLO_RANKS_BY", "mpirun"},
                               {"KOLO_RANK", "1"},
                               {"KOLO_SIZE", "2"},
                               {"KOLO_LOCAL_RANK", "1"},
                               {"OMPI_COMM_WORLD_RANK", "1"},
                               {"OMPI_COMM_WORLD_SIZE", "2"},
                               {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  EXPECT_EQ(read(variables).launcher, Launcher::openmpi);
  // A kolo run inside of it.
  EXPECT_EQ(read(with(kKolo, "KOLO_RANKS_BY", "mpirun")).launcher, Launcher::kolo);
}

TEST(LaunchersTest, KoloRun) {
  Launched launched = read(kKolo);
  EXPECT_EQ(launched.launcher, Launcher::kolo);
  EXPECT_EQ(launched.rank, 3);
  EXPECT_EQ(launched.size, 5);
  EXPECT_THAT(launched.ranks_per_host, ElementsAre(2, 2, 1));
  EXPECT_EQ(launched.rendezvous, "10.0.0.1:4000");
  EXPECT_EQ(launched.secret_fd, 100);
  EXPECT_EQ(launched.custodian_pid, 77);
  EXPECT_FALSE(launched.one_host);
}

TEST(LaunchersTest, KoloRunContradictingItself) {
  expect_refused(without(kKolo, "KOLO_SIZE"), "KOLO_SIZE is not");
  expect_refused(without(kKolo, "KOLO_RANK"), "KOLO_RANK is not");
  expect_refused(with(kKolo, "KOLO_RANK", "5"), "does not fit");
  expect_refused(with(kKolo, "KOLO_RANK", "-1"), "does not fit");
  expect_refused(with(kKolo, "KOLO_RANK", "3x"), "not a whole number");
  expect_refused(with(kKolo, "KOLO_SIZE", "99999999999"), "not a whole number");
  expect_refused(with(kKolo, "KOLO_RANKS_PER_HOST", "2,2"),
                 "adds up to 4 ranks, but KOLO_SIZE is 5");
  expect_refused(with(kKolo, "KOLO_RANKS_PER_HOST", "2;3"), "not a list");
  expect_refused(with(kKolo, "KOLO_RANKS_PER_HOST", "5,0"), "not a list");
  expect_refused(without(kKolo, "KOLO_RENDEZVOUS"), "is missing");
  expect_refused(without(kKolo, "KOLO_SECRET_FD"), "is missing");
}

TEST(LaunchersTest, OpenMpi) {
  const Variables variables = {{"OMPI_COMM_WORLD_RANK", "1"},
                               {"OMPI_COMM_WORLD_SIZE", "4"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                               {"OMPI_MCA_orte_precondition_transports", "12-34"},
                               {"OMPI_MCA_ess_base_jobid", "9"}};
  Launched launched = read(variables);
  EXPECT_EQ(launched.launcher, Launcher::openmpi);
  EXPECT_EQ(launched.rank, 1);
  EXPECT_TRUE(launched.one_host);
  EXPECT_EQ(launched.job, "openmpi-12-34-9");
  EXPECT_FALSE(read(with(variables, "OMPI_COMM_WORLD_LOCAL_SIZE", "2")).one_host);
  EXPECT_EQ(read(with(variables, "KOLO_JOB_ID", "mine")).job, "mine");
  expect_refused(without(variables, "OMPI_COMM_WORLD_SIZE"), "OMPI_COMM_WORLD_SIZE is not");
}

TEST(LaunchersTest, Mpich) {
  const Variables variables = {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}};
  Launched launched = read(variables);
  EXPECT_EQ(launched.launcher, Launcher::mpich);
  EXPECT_TRUE(launched.one_host);
  EXPECT_EQ(launched.job, "");
}

TEST(LaunchersTest, Slurm) {
  const Variables step = {{"SLURM_JOB_ID", "7"},         {"SLURM_STEP_ID", "0"},
                          {"SLURM_PROCID", "2"},         {"SLURM_NTASKS", "4"},
                          {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_NUM_NODES", "2"}};
  Launched launched = read(step);
  EXPECT_EQ(launched.launcher, Launcher::slurm);
  EXPECT_EQ(launched.rank, 2);
  EXPECT_EQ(launched.size, 4);
  EXPECT_FALSE(launched.one_host);
  EXPECT_EQ(launched.job, "slurm-cluster-7-0-0");
  // A requeued job is another one; an sbatch script is no step.
  EXPECT_EQ(read(with(step, "SLURM_RESTART_COUNT", "1")).job, "slurm-cluster-7-0-1");
  EXPECT_EQ(read({{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).launcher,
            Launcher::none);
  // mpirun inside an allocation has its own numbers; srun --mpi=pmi2 agrees with Slurm's.
  Variables inside = with(with(step, "PMI_RANK", "1"), "PMI_SIZE", "8");
  EXPECT_EQ(read(inside).rank, 1);
  EXPECT_EQ(read(inside).job, "");
  EXPECT_EQ(read(with(inside, "PMI_SIZE", "4")).job, "slurm-cluster-7-0-0");
}

TEST(LaunchersTest, TwoLaunchersThatDisagree) {
  Variables both = kKolo;
  both["OMPI_COMM_WORLD_RANK"] = "3";
  both["OMPI_COMM_WORLD_SIZE"] = "5";
  EXPECT_EQ(read(both).launcher, Launcher::kolo);
  both["OMPI_COMM_WORLD_RANK"] = "1";
  expect_refused(both, "rank 3 of 5 by kolo run and rank 1 of 5 by mpirun (Open MPI)");
}

}  // namespace
}  // namespace kolo::comm
