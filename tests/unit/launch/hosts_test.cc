#include "launch/hosts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/files.h"
#include "base/host.h"
#include "kolo/error.h"

namespace kolo::launch {

void PrintTo(const Host& host, std::ostream* out) { *out << host.name << " × " << host.slots; }
void PrintTo(const Placement& placement, std::ostream* out) {
  *out << placement.host << " " << placement.first_rank << " + " << placement.ranks;
}

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class F>
void expect_refused(F&& function, const std::string& text) {
  try {
    function();
    ADD_FAILURE() << "must throw: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

TEST(HostsTest, Lists) {
  EXPECT_THAT(parse_hosts("a"), ElementsAre(Host{"a", 1}));
  EXPECT_THAT(parse_hosts("a:4,b"), ElementsAre(Host{"a", 4}, Host{"b", 1}));
  EXPECT_THAT(parse_hosts("localhost,127.0.0.1:2,[::1]"), ElementsAre(Host{"localhost", 4}));
  EXPECT_THAT(parse_hosts(" a:4 , b-1.example_x:2"),
              ElementsAre(Host{"a", 4}, Host{"b-1.example_x", 2}));
  EXPECT_THAT(parse_hosts("[fe80::1]:2,[::1],10.0.0.1:3"),
              ElementsAre(Host{"fe80::1", 2}, Host{"::1", 1}, Host{"10.0.0.1", 3}));
  EXPECT_THAT(parse_hosts("[fe80::1%eth0]:2"), ElementsAre(Host{"fe80::1%eth0", 2}));
  EXPECT_THAT(parse_hosts("user@a:2,user@[::1]:3"),
              ElementsAre(Host{"user@a", 2}, Host{"user@::1", 3}));
  EXPECT_THAT(parse_hosts("a:2,b:1,a:3"), ElementsAre(Host{"a", 5}, Host{"b", 1}));
}

TEST(HostsTest, ListsThatAreWrong) {
  expect_refused([] { parse_hosts(""); }, "'' is not a host name");
  expect_refused([] { parse_hosts("a,"); }, "'' is not a host name");
  expect_refused([] { parse_hosts("a,,b"); }, "'' is not a host name");
  expect_refused([] { parse_hosts("a:"); }, "number of slots is missing");
  expect_refused([] { parse_hosts("a:0"); }, "'0' is not a number of slots");
  expect_refused([] { parse_hosts("a:-1"); }, "'-1' is not a number of slots");
  expect_refused([] { parse_hosts("a:2x"); }, "'2x' is not a number of slots");
  expect_refused([] { parse_hosts("a:99999999999"); }, "is not a number of slots");
  expect_refused([] { parse_hosts("a:1000000,a:1"); }, "'a' has 1000001 slots");
  std::string many = "h0:1000000";
  for (int i = 1; i < 2148; ++i) many += fmt::format(",h{}:1000000", i);
  expect_refused([&] { parse_hosts(many); }, "the 2148 hosts have 2148000000 slots together");
  expect_refused([] { parse_hosts("fe80::1"); }, "needs brackets");
  expect_refused([] { parse_hosts("[fe80::1:2"); }, "not closed");
  expect_refused([] { parse_hosts("[::1]2"); }, "':' must follow");
  expect_refused([] { parse_hosts("[::1]:"); }, "number of slots is missing");
  for (const char* evil : {"-oProxyCommand=x", "a b", "a;b", "a$(x)", "a'b", "user@-x", "@a", "a@"})
    expect_refused([&] { parse_hosts(evil); }, "is not a host name");
}

TEST(HostsTest, Files) {
  EXPECT_THAT(
      parse_hostfile("# head\n\na slots=2\n  b:3   # three\n\tc\t\n[::1]:2\n[::2] slots=4\r\n"
                     "d",
                     "hosts"),
      ElementsAre(Host{"a", 2}, Host{"b", 3}, Host{"c", 1}, Host{"::1", 2}, Host{"::2", 4},
                  Host{"d", 1}));
}

TEST(HostsTest, FilesThatAreWrongNameTheLine) {
  expect_refused([] { parse_hostfile("a\n\nb slots=x\n", "hosts"); }, "hosts:3:");
  expect_refused([] { parse_hostfile("a cores=3\n", "hosts"); }, "'cores=3' is not understood");
  expect_refused([] { parse_hostfile("a slots=1 slots=2\n", "hosts"); }, "hosts:1:");
  expect_refused([] { parse_hostfile("a b\n", "hosts"); }, "'b' is not understood");
  expect_refused([] { parse_hostfile("# nothing\n", "hosts"); }, "no host in this file");
  expect_refused([] { parse_hostfile("", "hosts"); }, "no host in this file");
}

TEST(HostsTest, RanksFillHostByHost) {
  const std::vector<Host> hosts = {{"a", 2}, {"b", 3}, {"c", 1}};
  EXPECT_THAT(place_ranks(hosts, 6),
              ElementsAre(Placement{"a", 0, 2}, Placement{"b", 2, 3}, Placement{"c", 5, 1}));
  EXPECT_THAT(place_ranks(hosts, 3), ElementsAre(Placement{"a", 0, 2}, Placement{"b", 2, 1}));
  EXPECT_THAT(place_ranks(hosts, 1), ElementsAre(Placement{"a", 0, 1}));
  expect_refused([&] { place_ranks(hosts, 7); }, "7 ranks were asked for, but the hosts have 6");
}

TEST(HostsTest, ThisMachine) {
  EXPECT_TRUE(is_this_machine("localhost"));
  EXPECT_TRUE(is_this_machine("127.0.0.1"));
  EXPECT_TRUE(is_this_machine("::1"));
  EXPECT_TRUE(is_this_machine(host_name()));
  EXPECT_FALSE(is_this_machine("192.0.2.77"));
  EXPECT_FALSE(is_this_machine("somebody@localhost"));
}

TEST(HostsTest, GroupsThatFitAtOnce) {
  const std::vector<Host> hosts{{"a", 4}, {"b", 4}, {"c", 1}};
  EXPECT_EQ(groups_at_once(hosts, 1, 1), 9);
  EXPECT_EQ(groups_at_once(hosts, 1, 3), 2);  // a slot of a and of b stays free
  EXPECT_EQ(groups_at_once(hosts, 2, 2), 2);
  EXPECT_EQ(groups_at_once(hosts, 2, 1), 4);  // c takes part in one of them
  EXPECT_EQ(groups_at_once(hosts, 3, 1), 1);
  EXPECT_EQ(groups_at_once(hosts, 3, 2), 0);
  EXPECT_EQ(groups_at_once({}, 1, 1), 0);
}

}  // namespace
}  // namespace kolo::launch
