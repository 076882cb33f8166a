#include "cluster/host_shell.h"

#include <gmock/gmock.h>

#include "base/files.h"
#include "kolo/error.h"

namespace kolo::cluster {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using ::testing::HasSubstr;

const Deadline kEver = Deadline::after(1h);

TEST(HostShellTest, CopiesAreComplete) {
  TempDir dir;
  const HostShell shell({}, "localhost", "");
  fs::create_directories(dir.path() / "from/below");
  const std::string large(3'000'000, 'x');  // more than pipes hold
  write_file_atomically(dir.path() / "from/below/large", large);
  shell.copy_to(dir.path() / "from", dir.path() / "to", kEver);
  EXPECT_EQ(read_file(dir.path() / "to/below/large"), large);
  shell.copy_from(dir.path() / "to/below/large", dir.path() / "back", kEver);
  EXPECT_EQ(read_file(dir.path() / "back"), large);
}

TEST(HostShellTest, ACopyThatFailsSaysWhy) {
  TempDir dir;
  const HostShell shell({}, "localhost", "");
  fs::create_directories(dir.path() / "from");
  write_file_atomically(dir.path() / "file", "");
  try {
    shell.copy_to(dir.path() / "from", dir.path() / "file/below", kEver);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_THAT(error.what(), HasSubstr("localhost: cannot copy: "));
    EXPECT_THAT(error.what(), HasSubstr("Not a directory"));
  }
}

}  // namespace
}  // namespace kolo::cluster
