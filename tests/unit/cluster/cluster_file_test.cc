#include "cluster/cluster_file.h"

#include <gmock/gmock.h>

#include "base/files.h"
#include "base/yaml.h"
#include "kolo/error.h"

namespace kolo::cluster {
namespace {

using ::testing::HasSubstr;

ClusterFile parse(const std::string& yaml) {
  return parse_cluster_file(parse_yaml(yaml, "f"), "f");
}

std::string error_of(const std::string& yaml) {
  try {
    parse(yaml);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.message();
  }
  return "";
}

const std::string kSmall = "cluster_name: lab\nprovider: {head_ip: a, worker_ips: [b, c]}\n";

TEST(ClusterFileTest, TheHeadComesFirst) {
  const ClusterFile file = parse(kSmall);
  EXPECT_EQ(file.name, "lab");
  ASSERT_EQ(file.hosts.size(), 3U);
  EXPECT_EQ(file.hosts[0], "a");
  EXPECT_EQ(file.hosts[2], "c");
  EXPECT_EQ(file.min_workers, std::nullopt);
}

TEST(ClusterFileTest, ResourcesAreOfAllHostsOrOfOne) {
  const ClusterFile file = parse(kSmall +
                                 "resources: {cpus: 4, memory: 16GB, licences: 2}\nhost_resources: "
                                 "{c: {slots: 8, gpus: 1}}\n");
  EXPECT_EQ(file.offer_of("a"), (Offer{4, 0, {{"licences", 2}, {"memory", 16e9}}}));
  EXPECT_EQ(file.offer_of("c"), (Offer{8, 1, {}}));
}

TEST(ClusterFileTest, NumbersOfWorkers) {
  const ClusterFile file = parse(kSmall + "min_workers: 0\nmax_workers: 1\n");
  EXPECT_EQ(file.hosts.size(), 2U);
  EXPECT_EQ(file.min_workers, 0);
  EXPECT_THAT(error_of(kSmall + "min_workers: 3\n"),
              HasSubstr("min_workers is 3, and there are 2"));
}

TEST(ClusterFileTest, NodesOfABatchSystem) {
  const ClusterFile file = parse(
      "cluster_name: lab\nprovider: {type: pbs, nodes: 4, time_minutes: 30, queue: debug, "
      "sched_flags: ['-l place=excl']}\nhost_resources: {anybody: {slots: 2}}\n");
  EXPECT_EQ(file.batch_system, "pbs");
  EXPECT_EQ(file.batch.nodes, 4);
  EXPECT_EQ(file.batch.minutes, 30);
  EXPECT_EQ(file.batch.queue, "debug");
  EXPECT_TRUE(file.hosts.empty());
  const std::string slurm = "cluster_name: lab\nprovider: {type: slurm}\n";
  EXPECT_EQ(parse(slurm).batch.nodes, 0);  // those of the allocation
  EXPECT_EQ(parse(slurm + "max_workers: 3\n").batch.nodes, 4);
  EXPECT_THAT(error_of(slurm + "file_mounts: {a: b}\n"), HasSubstr("file_mounts"));
  EXPECT_THAT(error_of("cluster_name: lab\nprovider: {type: slurm, node: 2}\n"),
              HasSubstr("did you mean 'nodes'"));
  EXPECT_THAT(error_of("cluster_name: lab\nprovider: {type: slrum}\n"),
              HasSubstr("did you mean 'slurm'"));
}

TEST(ClusterFileTest, CommandsThatMakeMachines) {
  const ClusterFile file = parse(
      "cluster_name: lab\nprovider: {type: command, create: make, delete: unmake, shell: 'in "
      "{host} "
      "sh -c'}\n");
  ASSERT_TRUE(file.machines);
  EXPECT_EQ(file.machines->remove, "unmake");
  EXPECT_EQ(file.ssh.shell, "in {host} sh -c");
  EXPECT_THAT(error_of("cluster_name: lab\nprovider: {type: command}\n"), HasSubstr("create"));
  EXPECT_THAT(error_of("cluster_name: lab\nprovider: {type: command, create: a, shell: b}\n"),
              HasSubstr("{host}"));
}

TEST(ClusterFileTest, ATypoIsNamedWithWhatMayBeMeant) {
  EXPECT_THAT(error_of(kSmall + "setup_comands: []\n"), HasSubstr("did you mean 'setup_commands'"));
  EXPECT_THAT(error_of("cluster_name: x\nprovider: {head_ip: a, workers_ips: []}\n"),
              HasSubstr("did you mean 'worker_ips'"));
  EXPECT_THAT(error_of(kSmall + "host_resources: {d: {slots: 1}}\n"), HasSubstr("'d' is unknown"));
  EXPECT_THAT(error_of(kSmall + "resources: {slot: 2}\n"), HasSubstr("did you mean 'slots'"));
  EXPECT_THAT(error_of(kSmall + "resources: {GPUs: 2}\n"), HasSubstr("did you mean 'gpus'"));
  EXPECT_THAT(error_of(kSmall + "resources: {Memory: 2}\n"), HasSubstr("did you mean 'memory'"));
}

TEST(ClusterFileTest, WhatIsMissingOrWrongIsNamed) {
  EXPECT_THAT(error_of("provider: {head_ip: a}\n"), HasSubstr("cluster_name"));
  EXPECT_THAT(error_of("cluster_name: lab\n"), HasSubstr("'provider' is missing"));
  EXPECT_THAT(error_of("cluster_name: lab\nprovider: {}\n"), HasSubstr("head_ip"));
  EXPECT_THAT(error_of("cluster_name: ../lab\nprovider: {head_ip: a}\n"), HasSubstr("'../lab'"));
  EXPECT_THAT(error_of("cluster_name: lab\nprovider: {head_ip: a, worker_ips: [a]}\n"),
              HasSubstr("'a' is named twice"));
  EXPECT_THAT(error_of("cluster_name: lab\nprovider: {type: aws, head_ip: a}\n"),
              HasSubstr("'aws' is unknown"));
  EXPECT_THAT(error_of(kSmall + "resources: {memory: lots}\n"), HasSubstr("16GB"));
  EXPECT_THAT(error_of(kSmall + "resources: {slots: -1}\n"), HasSubstr("'slots'"));
}

TEST(ClusterFileTest, AValueOfAnotherKindSaysWhatIsExpected) {
  EXPECT_EQ(error_of(kSmall + "setup_commands: pip install\n"),
            "f: 'setup_commands' must be a list of texts");
  EXPECT_EQ(error_of(kSmall + "setup_commands: [1]\n"),
            "f: 'setup_commands' must be a list of texts");
  EXPECT_THAT(error_of(kSmall + "file_mounts: [a]\n"), HasSubstr("must be a map of paths"));
  EXPECT_THAT(error_of(kSmall + "min_workers: two\n"), HasSubstr("must be a number"));
  EXPECT_THAT(error_of("cluster_name: 12\nprovider: {head_ip: a}\n"),
              HasSubstr("'cluster_name' must be text, in quotes"));
}

TEST(ClusterFileTest, NumbersThatAreTooSmall) {
  EXPECT_THAT(error_of(kSmall + "resources: {slots: 0}\n"),
              HasSubstr("'slots' must be at least 1"));
  EXPECT_THAT(error_of(kSmall + "resources: {slots: 1.5}\n"),
              HasSubstr("'slots' must be a whole number"));
  EXPECT_THAT(error_of(kSmall + "resources: {gpus: 0.5}\n"),
              HasSubstr("'gpus' must be a whole number"));
  EXPECT_THAT(error_of(kSmall + "resources: {memory: -1}\n"), HasSubstr("16GB"));
  EXPECT_THAT(error_of(kSmall + "resources: {memory: -1GB}\n"), HasSubstr("16GB"));
  EXPECT_THAT(error_of(kSmall + "idle_timeout_minutes: -1\n"), HasSubstr("idle_timeout_minutes"));
  EXPECT_THAT(error_of(kSmall + "keep_alive_seconds: 0\n"),
              HasSubstr("keep_alive_seconds must be at least 1"));
  EXPECT_THAT(error_of(kSmall + "auth: {ssh_port: 0}\n"), HasSubstr("ssh_port must be"));
  EXPECT_THAT(error_of(kSmall + "auth: {ssh_port: 65536}\n"), HasSubstr("ssh_port must be"));
  EXPECT_EQ(parse(kSmall + "resources: {slots: 1, gpus: 0, licences: 0}\n").offer.slots, 1);
}

TEST(ClusterFileTest, PathsAreRelativeToTheFile) {
  TempDir dir;
  write_file_atomically(dir.path() / "lab.yaml",
                        kSmall + "auth: {ssh_private_key: key}\nfile_mounts: {data: data}\n");
  const auto error_of_file = [&] {
    try {
      load_cluster_file(dir.path() / "lab.yaml");
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  EXPECT_THAT(error_of_file(), HasSubstr("cannot read the ssh_private_key " +
                                         (dir.path() / "key").string() + ": No such file"));
  write_file_atomically(dir.path() / "key", "");
  EXPECT_THAT(error_of_file(), HasSubstr("data does not exist"));
  // `kolo down` needs neither of them.
  EXPECT_EQ(name_in_cluster_file(dir.path() / "lab.yaml"), "lab");
  write_file_atomically(dir.path() / "data", "");
  const ClusterFile file = load_cluster_file(dir.path() / "lab.yaml");
  EXPECT_EQ(file.ssh.identity_file, dir.path() / "key");
  EXPECT_EQ(file.file_mounts.at("data"), dir.path() / "data");
}

TEST(ClusterFileTest, NumbersThatAreTooLarge) {
  EXPECT_THAT(error_of(kSmall + "resources: {slots: 1e300}\n"),
              HasSubstr("'slots' can be 1000000"));
  EXPECT_THAT(error_of(kSmall + "resources: {GPU: 4294967297}\n"),
              HasSubstr("'GPU' can be 1000000"));
  EXPECT_THAT(error_of(kSmall + "max_workers: 2147483647\n"),
              HasSubstr("max_workers must be between 0 and 1000000"));
  EXPECT_THAT(error_of(kSmall + "max_workers: 1e300\n"), HasSubstr("'max_workers'"));
  EXPECT_THAT(error_of(kSmall + "keep_alive_seconds: 1e300\n"), HasSubstr("'keep_alive_seconds'"));
  EXPECT_EQ(parse(kSmall + "idle_timeout_minutes: 1e300\n").idle_time,
            std::chrono::minutes(10'000'000));
}

}  // namespace
}  // namespace kolo::cluster
