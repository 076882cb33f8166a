#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "kolo/error.h"

namespace kolo {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const fs::path& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return info.st_mode & 07777;
}

TEST(FilesTest, ReadsWhatWasWritten) {
  TempDir dir;
  const std::string content("a\0b\n", 4);
  write_file_atomically(dir.path() / "f", content);
  EXPECT_EQ(read_file(dir.path() / "f"), content);
  write_file_atomically(dir.path() / "f", "");
  EXPECT_EQ(read_file(dir.path() / "f"), "");
  // No temporary file is left beside it.
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1);
}

TEST(FilesTest, ReadsFilesThatHaveNoSize) {
  EXPECT_NE(read_file("/proc/self/status").find("Name:"), std::string::npos);
}

TEST(FilesTest, TailIsTheEndOfWhatCameAfterAPlace) {
  TempDir dir;
  const auto path = dir.path() / "log";
  EXPECT_EQ(tail_of_file(path, 10), "");  // not there yet
  write_file_atomically(path, "0123456789");
  EXPECT_EQ(tail_of_file(path, 100), "0123456789");
  EXPECT_EQ(tail_of_file(path, 3), "789");
  EXPECT_EQ(tail_of_file(path, 3, 8), "89");
  EXPECT_EQ(tail_of_file(path, 3, 10), "");
  EXPECT_EQ(tail_of_file(path, 3, 11), "");
}

TEST(FilesTest, MissingFilesAreNotFound) {
  for (const char* path : {"/no/such/file", "/proc/self/status/x"}) {
    try {
      read_file(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_found);
    }
  }
}

TEST(FilesTest, ModesAreExact) {
  TempDir dir;
  const mode_t before = ::umask(0);
  write_file_atomically(dir.path() / "private", "x", kPrivateFile);
  write_file_atomically(dir.path() / "public", "x", 0644);
  ::umask(before);
  EXPECT_EQ(mode_of(dir.path() / "private"), 0600U);
  EXPECT_EQ(mode_of(dir.path() / "public"), 0644U);
  EXPECT_EQ(mode_of(dir.path()), 0700U);
}

TEST(FilesTest, ReadersNeverSeeAPart) {
  TempDir dir;
  const fs::path path = dir.path() / "f";
  const std::string a(100'000, 'a'), b(50'000, 'b');
  write_file_atomically(path, a);
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i) write_file_atomically(path, i % 2 == 0 ? b : a);
  });
  for (int i = 0; i < 200; ++i) {
    const std::string seen = read_file(path);
    EXPECT_TRUE(seen == a || seen == b) << seen.size();
  }
  writer.join();
}

TEST(FilesTest, AFailedWriteLeavesTheOldFile) {
  TempDir dir;
  fs::create_directory(dir.path() / "taken");
  EXPECT_THROW(write_file_atomically(dir.path() / "taken", "x"), Error);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1);
  EXPECT_THROW(write_file_atomically(dir.path() / "no" / "such", "x"), Error);
}

// As of /dev/stdout, which is a link to a pipe or to a file.
TEST(FilesTest, OutputsThatAreLinksAndPipesStayWhatTheyAre) {
  TempDir dir;
  const fs::path pipe = dir.path() / "pipe", to_pipe = dir.path() / "to-pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("pipe", to_pipe);
  const Fd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  for (const fs::path& path : {pipe, to_pipe}) {
    write_output_file(path, "content");
    std::array<char, 16> read{};
    EXPECT_EQ(::read(reader.get(), read.data(), read.size()), 7) << path;
    EXPECT_STREQ(read.data(), "content");
  }
  EXPECT_TRUE(fs::is_fifo(pipe));

  const fs::path file = dir.path() / "file", link = dir.path() / "link";
  write_file_atomically(file, "old");
  fs::create_symlink("file", link);
  write_output_file(link, "new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_file(file), "new");

  // A trial may have put them where a study writes: they lead nowhere else, and nobody waits.
  for (const fs::path& path : {link, pipe}) {
    write_file_atomically(path, "own");
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path))) << path;
  }
  EXPECT_EQ(read_file(file), "new");
}

TEST(FilesTest, PrivateDirectoriesAreMadeAndChecked) {
  TempDir dir;
  make_private_directory(dir.path() / "a" / "b");
  EXPECT_EQ(mode_of(dir.path() / "a"), 0700U);
  EXPECT_EQ(mode_of(dir.path() / "a" / "b"), 0700U);
  EXPECT_NO_THROW(make_private_directory(dir.path() / "a" / "b"));
  ::chmod((dir.path() / "a" / "b").c_str(), 0750);
  EXPECT_THROW(make_private_directory(dir.path() / "a" / "b"), Error);
  write_file_atomically(dir.path() / "file", "");
  EXPECT_THROW(make_private_directory(dir.path() / "file"), Error);
}

TEST(FilesTest, ATempDirGoesWithAllItHolds) {
  fs::path path;
  {
    TempDir dir("kolo-files-test");
    path = dir.path();
    fs::create_directories(path / "a" / "b");
    write_file_atomically(path / "a" / "b" / "c", "x");
  }
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace kolo
