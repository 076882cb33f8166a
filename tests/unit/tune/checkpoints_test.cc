#include "tune/trial/checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "base/files.h"

namespace kolo::tune {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Checkpoints, AreWholeOrNotThere) {
  TempDir scratch;
  const auto path = make_checkpoint(scratch.path(), 7, [](const fs::path& directory) {
    write_file_atomically(directory / "a", "1");
  });
  EXPECT_EQ(path, scratch.path() / "checkpoint_000007");
  EXPECT_EQ(read_file(path / "a"), "1");
  EXPECT_THROW(make_checkpoint(scratch.path(), 8,
                               [](const fs::path& directory) {
                                 write_file_atomically(directory / "a", "1");
                                 throw std::runtime_error("half way");
                               }),
               std::runtime_error);
  EXPECT_THAT(names_in(scratch.path()), testing::ElementsAre("checkpoint_000007"));
  // Nothing that is there is overwritten: somebody may be reading it.
  EXPECT_EQ(make_checkpoint(scratch.path(), 7, [](const fs::path&) {}),
            scratch.path() / "checkpoint_000007-2");
}

TEST(Checkpoints, WhatARankTakesPartInIsNotKept) {
  TempDir scratch;
  const auto write = [](const fs::path& directory) {
    write_file_atomically(directory / "a", "1");
    EXPECT_EQ(names_in(directory.parent_path()).size(), 1U);
  };
  write_and_discard(scratch.path(), write);
  EXPECT_TRUE(fs::is_empty(scratch.path()));
  const auto broken = [](const fs::path&) { throw std::runtime_error("half way"); };
  EXPECT_THROW(write_and_discard(scratch.path(), broken), std::runtime_error);
  EXPECT_TRUE(fs::is_empty(scratch.path()));
  // Without the trial's directory: somewhere else, and gone too.
  fs::path seen;
  write_and_discard(scratch.path() / "missing", [&seen](const fs::path& directory) {
    EXPECT_TRUE(fs::is_directory(directory));
    seen = directory;
  });
  EXPECT_FALSE(fs::exists(seen));
  EXPECT_FALSE(fs::exists(scratch.path() / "missing"));
}

TEST(Checkpoints, ClonesAreCopies) {
  TempDir source, target;
  const auto path = make_checkpoint(source.path(), 3, [](const fs::path& directory) {
    fs::create_directory(directory / "deep");
    write_file_atomically(directory / "deep/a", "1");
  });
  const auto copy = clone_checkpoint(path, target.path(), 3);
  fs::remove_all(path);
  EXPECT_EQ(read_file(copy / "deep/a"), "1");
}

TEST(Checkpoints, TheWorstGoFirstAndTheNewestNever) {
  const auto with_scores = [](std::vector<std::optional<double>> scores) {
    std::vector<Checkpoint> all;
    for (const auto& score : scores) all.push_back({"", 0, 0, score});
    return all;
  };
  EXPECT_TRUE(surplus_checkpoints(with_scores({1, 2, 3}), -1).empty());
  EXPECT_TRUE(surplus_checkpoints(with_scores({1, 2}), 2).empty());
  EXPECT_THAT(surplus_checkpoints(with_scores({{}, {}, {}, {}}), 2), testing::ElementsAre(0, 1));
  EXPECT_THAT(surplus_checkpoints(with_scores({9, 5, 7, 1}), 2), testing::ElementsAre(1, 2));
  EXPECT_THAT(surplus_checkpoints(with_scores({9, 5}), 0), testing::ElementsAre(0));
}

TEST(Checkpoints, LeftoversAreRemoved) {
  TempDir scratch;
  const auto known = make_checkpoint(scratch.path(), 1, [](const fs::path&) {});
  make_checkpoint(scratch.path(), 2, [](const fs::path&) {});
  fs::create_directory(scratch.path() / ".checkpoint.12.0");
  write_file_atomically(scratch.path() / "result.json", "{}");
  remove_unknown_checkpoints(scratch.path(), {{known, 1, 1, {}}});
  EXPECT_THAT(names_in(scratch.path()), testing::ElementsAre("checkpoint_000001", "result.json"));
}

}  // namespace
}  // namespace kolo::tune
