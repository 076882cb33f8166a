#include "comm/elastic/commit_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
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

  const auto newest = files.list().back();
  std::fstream(newest, std::ios::in | std::ios::out).seekp(500) << "damage";
  EXPECT_EQ(files.read_latest()->commits, 10U);
  EXPECT_FALSE(std::filesystem::exists(newest));
  EXPECT_TRUE(std::filesystem::exists(newest.string() + ".damaged"));
}

TEST(CommitFilesTest, IfNoneIsWholeThatIsNoBeginning) {
  TempDir dir;
  const CommitFiles files(dir.path());
  for (const std::uint64_t commits : {10U, 100U}) files.write({commits, {"a"}});
  for (const auto& file : files.list()) std::ofstream(file, std::ios::trunc) << "half";
  for (int i = 0; i < 2; ++i) {  // the next rank that tries finds the same
    try {
      (void)files.read_latest();
      ADD_FAILURE() << "it was taken for an empty directory";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corruption);
      EXPECT_THAT(error.message(), testing::HasSubstr("commit-000000000100.kolo"));
      EXPECT_THAT(error.message(), testing::HasSubstr("none of the 2 commits"));
    }
  }
}

TEST(CommitFilesTest, CommitsThatCannotBeSeenAreNoBeginning) {
  TempDir dir;
  std::filesystem::create_directory_symlink(dir.path() / "loop", dir.path() / "loop");
  try {
    (void)CommitFiles(dir.path() / "loop").read_latest();
    ADD_FAILURE() << "it was taken for an empty directory";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_THAT(error.message(), testing::HasSubstr("cannot be read"));
  }
  EXPECT_FALSE(CommitFiles(dir.path() / "not there").read_latest());
}

TEST(CommitFilesTest, OneOfANewerKoloIsNotPassedOver) {
  TempDir dir;
  const CommitFiles files(dir.path());
  for (const std::uint64_t commits : {10U, 100U}) files.write({commits, {"a"}});
  std::fstream(files.list().back(), std::ios::in | std::ios::out).seekp(8) << '\x7f';
  try {
    (void)files.read_latest();
    ADD_FAILURE() << "it was passed over";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
  }
}

TEST(CommitFilesTest, WhatWasWrittenLastIsKeptBesideHigherNumbers) {
  TempDir dir;
  const CommitFiles files(dir.path());
  for (const std::uint64_t commits : {900U, 1000U, 10U, 20U}) files.write({commits, {"a"}});
  EXPECT_TRUE(std::filesystem::exists(dir.path() / "commit-000000000020.kolo"));
  EXPECT_EQ(files.list().size(), 2U);
}

// A rank that is killed while it writes leaves a part behind, which may be large.
TEST(CommitFilesTest, PartsThatKilledWritersHaveLeftAreRemoved) {
  using std::filesystem::last_write_time;
  TempDir dir;
  const CommitFiles files(dir.path());
  const auto in_dir = [&](const char* name) {
    std::ofstream(dir.path() / name) << "a part";
    return dir.path() / name;
  };
  const auto abandoned = in_dir("commit-000000000009.kolo.a1B2c3");
  const auto at_work = in_dir("commit-000000000010.kolo.a1B2c3");
  const auto others = in_dir("commit-000000000009.kolo.damaged");
  for (const auto& old : {abandoned, others})
    last_write_time(old, last_write_time(old) - std::chrono::hours(2));
  files.write({11, {"a"}});
  EXPECT_FALSE(std::filesystem::exists(abandoned));
  EXPECT_TRUE(std::filesystem::exists(at_work));
  EXPECT_TRUE(std::filesystem::exists(others));
  EXPECT_EQ(files.read_latest()->commits, 11U);
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
