#include "cluster/cluster_file.h"

#include <gmock/gmock.h>

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
  EXPECT_EQ(file.hosts[0].host, "a");
  EXPECT_EQ(file.hosts[2].host, "c");
  EXPECT_EQ(file.min_workers, 2);
}

TEST(ClusterFileTest, ResourcesAreOfAllHostsOrOfOne) {
  const ClusterFile file = parse(kSmall +
                                 "resources: {cpus: 4, memory: 16GB, licences: 2}\nhost_resources: "
                                 "{c: {slots: 8, gpus: 1}}\n");
  EXPECT_EQ(file.hosts[0].offer, (Offer{4, 0, {{"licences", 2}, {"memory", 16e9}}}));
  EXPECT_EQ(file.hosts[2].offer, (Offer{8, 1, {}}));
}

TEST(ClusterFileTest, NumbersOfWorkers) {
  const ClusterFile file = parse(kSmall + "min_workers: 0\nmax_workers: 1\n");
  EXPECT_EQ(file.hosts.size(), 2U);
  EXPECT_EQ(file.min_workers, 0);
  EXPECT_THAT(error_of(kSmall + "min_workers: 3\n"),
              HasSubstr("min_workers is 3, and there are 2"));
}

TEST(ClusterFileTest, ATypoIsNamedWithWhatMayBeMeant) {
  EXPECT_THAT(error_of(kSmall + "setup_comands: []\n"), HasSubstr("did you mean 'setup_commands'"));
  EXPECT_THAT(error_of("cluster_name: x\nprovider: {head_ip: a, workers_ips: []}\n"),
              HasSubstr("did you mean 'worker_ips'"));
  EXPECT_THAT(error_of(kSmall + "host_resources: {d: {slots: 1}}\n"), HasSubstr("'d' is unknown"));
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

}  // namespace
}  // namespace kolo::cluster
