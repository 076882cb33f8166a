#include "comm/elastic/shared_copy.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace kolo::comm::elastic {
namespace {

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> value(bytes);
  for (std::size_t i = 0; i < bytes; ++i) value[i] = static_cast<std::byte>(i * 31 + i / 4096);
  return value;
}

/// A process that has saved a pattern, and lives until it is killed.
struct Owner {
  explicit Owner(std::size_t bytes) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid = ::fork();
    if (pid == 0) {
      SharedCopy copy;
      copy.save(pattern(bytes / 2));  // one that it grows out of
      copy.save(pattern(bytes));
      const SharedCopy::Place mine = copy.place();
      if (::write(ends[1], &mine, sizeof mine) != sizeof mine) ::_exit(1);
      while (true) ::pause();
    }
    ::close(ends[1]);
    EXPECT_EQ(::read(ends[0], &place, sizeof place), static_cast<ssize_t>(sizeof place));
    ::close(ends[0]);
  }
  ~Owner() { end(); }
  void end() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(std::exchange(pid, -1), nullptr, 0);
  }

  pid_t pid = -1;
  SharedCopy::Place place;
};

TEST(SharedCopyTest, AnotherProcessReadsIt) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4097}, (std::size_t{20} << 20) + 3}) {
    Owner owner(bytes);
    ASSERT_EQ(owner.place.bytes, bytes);
    std::vector<std::byte> value(bytes);
    ASSERT_TRUE(SharedCopy::try_read(owner.place, value));
    EXPECT_TRUE(value == pattern(bytes));
  }
}

TEST(SharedCopyTest, WhatCannotBeReadIsSaid) {
  Owner owner(5000);
  std::vector<std::byte> value(5000), other(4999);
  EXPECT_FALSE(SharedCopy::try_read(owner.place, other));
  SharedCopy::Place wrong = owner.place;
  wrong.segment.nonce ^= 1;
  EXPECT_FALSE(SharedCopy::try_read(wrong, value));
  owner.end();
  EXPECT_FALSE(SharedCopy::try_read(owner.place, value));
}

TEST(SharedCopyTest, ACopyOfNothingIsEmpty) {
  SharedCopy copy;
  EXPECT_TRUE(copy.bytes().empty());
  copy.save(pattern(10));
  copy.save({});
  EXPECT_TRUE(copy.bytes().empty());
  EXPECT_EQ(copy.place().bytes, 0U);
}

}  // namespace
}  // namespace kolo::comm::elastic
