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

// Hidden files have names that the shell's * leaves out.
TEST(HostShellTest, AFileOfAnyNameIsCopied) {
  TempDir dir;
  const HostShell shell({}, "localhost", "");
  for (const std::string name : {".hidden", "-o", "with blank", "it's"}) {
    write_file_atomically(dir.path() / name, name);
    shell.copy_to(dir.path() / name, dir.path() / "there", kEver);
    EXPECT_EQ(read_file(dir.path() / "there"), name);
    shell.copy_from(dir.path() / name, dir.path() / "back", kEver);
    EXPECT_EQ(read_file(dir.path() / "back"), name);
  }
}

// What a link points to may not be on the other machine.
TEST(HostShellTest, ALinkToAFileIsCopiedAsTheFile) {
  TempDir dir;
  const HostShell shell({}, "localhost", "");
  fs::create_directories(dir.path() / "data");
  write_file_atomically(dir.path() / "data/file", "content");
  fs::create_symlink("data/file", dir.path() / "link");
  shell.copy_to(dir.path() / "link", dir.path() / "there/copy", kEver);
  EXPECT_FALSE(fs::is_symlink(dir.path() / "there/copy"));
  EXPECT_EQ(read_file(dir.path() / "there/copy"), "content");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path() / "there"), {}), 1);
}

TEST(HostShellTest, APathThatEndsWithASlashIsADirectory) {
  TempDir dir;
  const HostShell shell({}, "localhost", "");
  write_file_atomically(dir.path() / "file", "content");
  shell.copy_to(dir.path() / "file", (dir.path() / "there/").string(), kEver);
  EXPECT_EQ(read_file(dir.path() / "there/file"), "content");
}

// tar's last words are that it has failed.
TEST(HostShellTest, WhatTarSaysBeforeItsLastWordsIsReported) {
  EXPECT_EQ(last_line_of({0x200, "",
                          "tar: ./a: Cannot write: No space left on device\n"
                          "tar: Exiting with failure status due to previous errors\n"}),
            "tar: ./a: Cannot write: No space left on device");
  EXPECT_EQ(last_line_of({0x200, "only this\n\n", ""}), "only this");
  EXPECT_EQ(last_line_of({0x200, "", "tar: Exiting with failure status due to previous errors\n"}),
            "tar: Exiting with failure status due to previous errors");
  EXPECT_EQ(last_line_of({0xff00, "", ""}),
            "exited with status 255, as ssh does when the connection is lost");
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
