#include <gmock/gmock.h>

#include <algorithm>

#include "exec/ssh.h"

namespace kolo::exec {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

TEST(SshCommandTest, EndsWithHostAndOneQuotedProgram) {
  SshOptions options;
  options.command = {"myssh", "-F", "config"};
  options.remote_kolo = "/opt/it's here/kolo";
  const auto argv = ssh_command(options, "node");
  EXPECT_EQ(argv[0], "myssh");
  EXPECT_EQ(argv[1], "-F");
  EXPECT_THAT(std::vector<std::string>(argv.end() - 3, argv.end()),
              ElementsAre("--", "node", "exec '/opt/it'\\''s here/kolo' custodian"));
  EXPECT_THAT(argv, Contains("BatchMode=yes"));
  EXPECT_EQ(std::count(argv.begin(), argv.end(), "-p"), 0);
}

TEST(SshCommandTest, PortAndKey) {
  SshOptions options;
  options.remote_kolo = "/k";
  options.port = 2222;
  options.identity_file = "/my key";
  options.connect_timeout_seconds = 7;
  const auto argv = ssh_command(options, "node");
  EXPECT_EQ(*(std::find(argv.begin(), argv.end(), "-p") + 1), "2222");
  EXPECT_EQ(*(std::find(argv.begin(), argv.end(), "-i") + 1), "/my key");
  EXPECT_THAT(argv, Contains("ConnectTimeout=7"));
}

}  // namespace
}  // namespace kolo::exec
