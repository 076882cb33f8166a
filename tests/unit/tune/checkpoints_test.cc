#include "tune/trial/checkpoints.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <stdexcept>

#include "base/errors.h"
#include "base/files.h"
#include "support/power_failures.h"
#include "tune/trial/checkpoint_paths.h"
#include "tune/trial/trials.h"

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

TEST(Checkpoints, AreOnDiskBeforeTheyAreNamed) {
  test::fail_everywhere(
      [](const fs::path& folder, auto done) {
        for (int iteration = 1; iteration <= 2; ++iteration) {
          make_checkpoint(folder / "trial", iteration, [&](const fs::path& directory) {
            fs::create_directory(directory / "deep");
            std::ofstream(directory / "deep/weights") << iteration;
          });
          done();
        }
      },
      [](const fs::path& folder, int count) {
        for (int iteration = 1; iteration <= 2; ++iteration) {
          const fs::path made = folder / "trial" / fmt::format("checkpoint_{:06}", iteration);
          if (iteration > count && !fs::exists(made)) continue;
          EXPECT_EQ(read_file(made / "deep/weights"), std::to_string(iteration));
        }
      });
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

TEST(Checkpoints, ClonesHaveTheLinksOfTheOther) {
  TempDir source, target;
  const auto path = source.path() / "ckpt";
  fs::create_directories(path);
  write_file_atomically(source.path() / "shared", "1");
  fs::create_symlink(".", path / "again");
  fs::create_symlink("nowhere", path / "gone");
  fs::create_symlink("loop", path / "loop");
  fs::create_symlink("../shared", path / "weights");
  ASSERT_EQ(::mkfifo((path / "pipe").c_str(), 0600), 0);
  const auto copy = clone_checkpoint(path, target.path(), 3);
  fs::remove_all(source.path());
  EXPECT_EQ(read_file(copy / "weights"), "1");  // which the other may remove
  EXPECT_EQ(fs::read_symlink(copy / "again"), ".");
  EXPECT_EQ(fs::read_symlink(copy / "gone"), "nowhere");
  EXPECT_FALSE(fs::exists(copy / "pipe"));
}

TEST(Checkpoints, ClonesAreMadeInTheTrialsOwnDirectory) {
  TempDir source, target;
  const auto path = make_checkpoint(source.path(), 3, [](const fs::path&) {});
  fs::create_directory(target.path() / "precious");
  fs::create_directory_symlink("precious", target.path() / "trial");
  EXPECT_THROW(clone_checkpoint(path, target.path() / "trial", 3), Error);
  EXPECT_TRUE(fs::is_empty(target.path() / "precious"));
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
  const double nan = std::nan("");
  EXPECT_THAT(surplus_checkpoints(with_scores({nan, 9, nan, 7, 1}), 3), testing::ElementsAre(0, 2));
  EXPECT_THAT(surplus_checkpoints(with_scores({9, nan, 7, nan}), 2), testing::ElementsAre(1, 2));
}

TEST(Checkpoints, AreToldFromFoldersOfTheProgram) {
  TempDir scratch;
  const auto first = make_checkpoint(scratch.path(), 1, [](const fs::path&) {});
  const auto second = make_checkpoint(scratch.path(), 1, [](const fs::path&) {});
  const fs::path unfinished = scratch.path() / ".checkpoint.12.0";
  fs::create_directory(unfinished);
  write_file_atomically(scratch.path() / "result.json", "{}");
  for (const char* own :
       {"checkpoint_best", "checkpoint_1", "checkpoint_000002.old", ".checkpoint.x"})
    fs::create_directory(scratch.path() / own);
  EXPECT_THAT(checkpoints_in(scratch.path()),
              testing::UnorderedElementsAre(first, second, unfinished));
}

TEST(CheckpointPaths, OnlyWhatIsInsideTheTrialsDirectoryIsTheStudys) {
  TempDir scratch;
  const fs::path trial = scratch.path() / "trial", other = scratch.path() / "trial-2";
  fs::create_directories(trial / "ckpt");
  fs::create_directories(other);
  fs::create_directory_symlink(other, trial / "link");
  fs::create_directory_symlink(trial, scratch.path() / "alias");
  EXPECT_TRUE(lies_inside(trial / "ckpt", trial));
  EXPECT_TRUE(lies_inside(trial / "not-yet/there", trial));
  EXPECT_TRUE(lies_inside(scratch.path() / "alias/ckpt", trial));
  for (const fs::path& path : {trial, other, scratch.path(), trial / "link", trial / "link/x",
                               trial / "..", trial / "../trial-2", fs::path("/")})
    EXPECT_FALSE(lies_inside(path, trial)) << path;

  EXPECT_EQ(checkpoint_path("ckpt/", trial), trial / "ckpt");
  EXPECT_EQ(checkpoint_path("./a/../ckpt", trial), trial / "ckpt");
  EXPECT_EQ(checkpoint_path("/data", trial), "/data");
  EXPECT_TRUE(share_files(trial / "ckpt/model", scratch.path() / "alias/ckpt"));
  EXPECT_TRUE(share_files(trial, trial / "ckpt"));
  EXPECT_FALSE(share_files(trial / "ckpt", trial / "ckpt-2"));
}

TEST(CheckpointPaths, ALinkInPlaceOfTheTrialsDirectoryMakesNothingItsOwn) {
  TempDir scratch;
  const fs::path trial = scratch.path() / "study/trial", precious = scratch.path() / "precious";
  fs::create_directories(precious / "sub");
  fs::create_directories(trial.parent_path());
  EXPECT_TRUE(lies_inside(trial / "sub", trial));  // before it is made
  fs::create_directory_symlink(precious, trial);
  for (const fs::path& path : {precious / "sub", trial / "sub", trial, precious})
    EXPECT_FALSE(lies_inside(path, trial)) << path;
}

// A user may keep a link to a checkpoint, and name it.
TEST(CheckpointPaths, ALinkOfTheUserIsTheUsers) {
  TempDir scratch;
  const fs::path trial = scratch.path() / "study/trial", best = scratch.path() / "best";
  fs::create_directories(trial / "ckpt");
  fs::create_directory_symlink(trial / "ckpt", best);
  fs::create_directory_symlink("ckpt", trial / "latest");
  EXPECT_FALSE(lies_inside(best, trial));
  remove_own(best, trial);
  EXPECT_TRUE(fs::is_symlink(best));
  EXPECT_TRUE(lies_inside(trial / "latest", trial));
  remove_own(trial / "latest", trial);
  EXPECT_FALSE(fs::is_symlink(trial / "latest"));
  EXPECT_TRUE(fs::exists(trial / "ckpt"));
  remove_own(trial / "ckpt", trial);
  EXPECT_FALSE(fs::exists(trial / "ckpt"));
}

TEST(CheckpointPaths, SomeAreNone) {
  TempDir scratch;
  const fs::path trial = scratch.path() / "study/trial";
  fs::create_directories(trial);
  fs::create_symlink("loop", trial / "loop");
  fs::create_directory_symlink("../..", trial / "up");
  const auto fault = [&](const fs::path& named) {
    return fault_of_checkpoint(checkpoint_path(named, trial), trial);
  };
  for (const fs::path& path : {fs::path("/"), fs::path(".."), fs::path("../.."), fs::path("up"),
                               fs::path("loop"), fs::path(std::string(300, 'a')), scratch.path()})
    EXPECT_NE(fault(path), "") << path;
  for (const fs::path& path : {fs::path("."), fs::path("ckpt"), fs::path("../other"),
                               fs::path("/nowhere/at/all"), fs::path("up/precious")})
    EXPECT_EQ(fault(path), "") << path;
}

TEST(CheckpointPaths, WhatATrialDoesToItsLinksKeepsNothingOfOthers) {
  TempDir scratch;
  Trials trials;
  for (const char* name : {"one", "two"}) {
    auto trial = std::make_unique<StudyTrial>();
    trial->record.number = trials.size();
    trial->record.directory = (scratch.path() / name).string();
    fs::create_directories(scratch.path() / name / "ckpt");
    trials.add(std::move(trial));
  }
  const fs::path link = scratch.path() / "one/link", needed = scratch.path() / "two/ckpt";
  fs::create_directory_symlink(needed, link);
  trials.note_checkpoint(trials.at(0), link);
  EXPECT_FALSE(trials.may_remove(trials.at(1), needed));
  fs::remove(link);
  fs::create_symlink("link", link);
  EXPECT_FALSE(trials.may_remove(trials.at(1), needed));  // it was named
  fs::create_directory(scratch.path() / "two/other");
  EXPECT_TRUE(trials.may_remove(trials.at(1), scratch.path() / "two/other"));
  trials.note_checkpoint(trials.at(0), "/");
  trials.note_checkpoint(trials.at(0), scratch.path() / std::string(300, 'a'));
  EXPECT_TRUE(trials.may_remove(trials.at(1), scratch.path() / "two/other"));
}

TEST(CheckpointPaths, NothingThatIsReferredToIsRemoved) {
  TempDir scratch;
  Trials trials;
  const auto add = [&](const std::string& name) -> StudyTrial& {
    auto trial = std::make_unique<StudyTrial>();
    trial->record.number = trials.size();
    trial->record.directory = (scratch.path() / name).string();
    for (const char* checkpoint : {"a", "b/deep"})
      fs::create_directories(scratch.path() / name / checkpoint);
    return trials.add(std::move(trial));
  };
  StudyTrial &first = add("first"), &second = add("second");
  const fs::path home = first.record.directory;
  EXPECT_TRUE(trials.may_remove(first, home / "a"));
  EXPECT_FALSE(trials.may_remove(first, scratch.path() / "second/a"));
  first.checkpoints = {{home / "b/deep", 1, 1, {}}};
  EXPECT_FALSE(trials.may_remove(first, home / "b"));
  trials.note_checkpoint(second, home / "a");
  EXPECT_FALSE(trials.may_remove(first, home / "a"));
}

}  // namespace
}  // namespace kolo::tune
