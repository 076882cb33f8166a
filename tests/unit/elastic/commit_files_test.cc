#include "comm/elastic/commit_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "kolo/error.h"
#include "support/power_failures.h"

namespace kolo::comm::elastic {
namespace {

TEST(CommitFilesTest, TheNewestTwoAreKeptAndADamagedOneIsSkipped) {
  TempDir dir;
  const CommitFiles files(dir.path() / "made");
  EXPECT_FALSE(files.read_latest());
  for (const std::uint64_t commits : {9U, 10U, 100U})
    files.write({commits, {"a", "", std::string(1000, 'x') + std::to_string(commits)}});
  ASSERT_EQ(files.list().size(), 2U);
  EXPECT_EQ(files.read_latest()->commits, 100U);
  EXPECT_EQ(files.read_latest()->parts.at(2).substr(1000), "100");

  std::fstream(files.list().back(), std::ios::in | std::ios::out).seekp(500) << "damage";
  EXPECT_EQ(files.read_latest()->commits, 10U);
  std::ofstream(files.list().front(), std::ios::trunc) << "half";
  EXPECT_FALSE(files.read_latest());
}

TEST(CommitFilesTest, APowerFailureTakesNoneThatWasWritten) {
  test::fail_everywhere(
      [](const std::filesystem::path& folder, auto done) {
        const CommitFiles files(folder / "job/commits");
        for (const std::uint64_t commits : {1U, 2U, 3U, 4U}) {
          files.write({commits, {std::string(5000, 'x')}});
          done();
        }
      },
      [](const std::filesystem::path& folder, int count) {
        const auto latest = CommitFiles(folder / "job/commits").read_latest();
        EXPECT_TRUE(latest ? static_cast<int>(latest->commits) >= count : count == 0);
      });
}

TEST(CommitFilesTest, WhatIsNotWholeIsRefused) {
  const std::string whole = encode_commit({3, {"part", "other"}});
  EXPECT_EQ(decode_commit(whole, "it").parts.size(), 2U);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW((void)decode_commit(whole.substr(0, length), "it"), Error) << length;
}

}  // namespace
}  // namespace kolo::comm::elastic
