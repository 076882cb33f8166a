#include "base/remove_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"

namespace kolo {
namespace {

namespace fs = std::filesystem;

class RemoveTreeTest : public testing::Test {
 protected:
  RemoveTreeTest() {
    fs::create_directories(place() / "precious/deep");
    write_file_atomically(place() / "precious/deep/file", "mine");
  }
  /// The temporary folder may be named by a link.
  [[nodiscard]] fs::path place() const { return fs::canonical(scratch_.path()); }
  void expect_precious() const {
    EXPECT_EQ(read_file(place() / "precious/deep/file"), "mine");
    EXPECT_TRUE(fs::is_directory(place() / "precious/deep"));
  }

  TempDir scratch_;
};

TEST_F(RemoveTreeTest, RemovesFilesFoldersLinksAndPipes) {
  const fs::path tree = place() / "tree";
  fs::create_directories(tree / "a/b/c");
  write_file_atomically(tree / "a/b/file", "1");
  fs::create_directory_symlink(place() / "precious", tree / "a/link");
  fs::create_symlink("again", tree / "again");
  ASSERT_EQ(::mkfifo((tree / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(remove_without_links(tree));
  EXPECT_FALSE(fs::exists(tree));
  write_file_atomically(place() / "file", "1");
  EXPECT_TRUE(remove_without_links(place() / "file"));
  EXPECT_FALSE(fs::exists(place() / "file"));
  EXPECT_TRUE(remove_without_links(place() / "file"));
  EXPECT_TRUE(remove_without_links(place() / "not/there"));
  expect_precious();
}

TEST_F(RemoveTreeTest, ALinkIsRemovedAndNotFollowed) {
  fs::create_directory_symlink(place() / "precious", place() / "link");
  EXPECT_FALSE(remove_without_links(place() / "link/deep"));
  expect_precious();
  EXPECT_TRUE(remove_without_links(place() / "link"));
  EXPECT_FALSE(fs::is_symlink(place() / "link"));
  expect_precious();
}

TEST_F(RemoveTreeTest, TakesWholePathsOnly) {
  EXPECT_FALSE(remove_without_links("precious"));
  EXPECT_FALSE(remove_without_links("/"));
  EXPECT_FALSE(remove_without_links(place() / "precious/deep/.."));
  EXPECT_FALSE(remove_without_links(place() / "precious/../precious/deep"));
  EXPECT_FALSE(remove_without_links(place() / "precious/"));
  expect_precious();
}

TEST_F(RemoveTreeTest, LeavesWhatIsNestedWithoutEnd) {
  Fd folder(::open(place().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int depth = 0; depth < 200; ++depth) {
    ASSERT_EQ(::mkdirat(folder.get(), "d", 0700), 0);
    folder = Fd(::openat(folder.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  write_file_atomically(place() / "d/file", "1");
  EXPECT_FALSE(remove_without_links(place() / "d"));
  EXPECT_FALSE(fs::exists(place() / "d/file"));
  EXPECT_TRUE(remove_without_links(place() / "precious"));
}

}  // namespace
}  // namespace kolo
