#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

#include "exec/ssh.h"
#include "kolo/error.h"

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

TEST(SshCommandTest, WhichHostKeysItTakes) {
  EXPECT_THAT(ssh_command({}, "node"), Contains("StrictHostKeyChecking=accept-new"));
  ::setenv("KOLO_SSH_HOST_KEYS", "yes", 1);
  EXPECT_THAT(ssh_command(ssh_from_environment("/k"), "node"),
              Contains("StrictHostKeyChecking=yes"));
  ::setenv("KOLO_SSH_HOST_KEYS", "maybe", 1);
  EXPECT_THROW(ssh_from_environment("/k"), Error);
  ::unsetenv("KOLO_SSH_HOST_KEYS");
}

}  // namespace
}  // namespace kolo::exec
