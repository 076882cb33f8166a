#include "launch/output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

namespace kolo::launch {
namespace {

using ::testing::ElementsAre;

class LineSplitterTest : public ::testing::Test {
 protected:
  void feed(std::string_view bytes) { splitter_.feed(bytes, emit()); }
  void finish() { splitter_.finish(emit()); }
  LineSplitter::Emit emit() {
    return [this](std::string_view line, std::string_view end) {
      lines_.push_back(std::string(line) + "|" + std::string(end));
    };
  }
  LineSplitter splitter_;
  std::vector<std::string> lines_;
};

TEST_F(LineSplitterTest, GivesWholeLines) {
  feed("a\nb");
  EXPECT_THAT(lines_, ElementsAre("a|\n"));
  feed("c\n\n");
  EXPECT_THAT(lines_, ElementsAre("a|\n", "bc|\n", "|\n"));
  finish();
  EXPECT_EQ(lines_.size(), 3U);
}

TEST_F(LineSplitterTest, AMissingEndIsAdded) {
  feed("last");
  EXPECT_TRUE(lines_.empty());
  finish();
  EXPECT_THAT(lines_, ElementsAre("last|\n"));
}

TEST_F(LineSplitterTest, EndsMayComeInPieces) {
  feed("a\r");
  EXPECT_TRUE(lines_.empty());  // \n may follow
  feed("\nb\r");
  feed("c\r\r\n");
  finish();
  EXPECT_THAT(lines_, ElementsAre("a|\r\n", "b|\r", "c|\r", "|\r\n"));
}

TEST_F(LineSplitterTest, ALastCarriageReturnStays) {
  feed("50%\r");
  finish();
  EXPECT_THAT(lines_, ElementsAre("50%|\r"));
}

TEST_F(LineSplitterTest, LongLinesInManyPiecesAreOne) {
  for (int i = 0; i < 1000; ++i) feed(std::string(1000, 'x'));
  feed("\n");
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_EQ(lines_[0].size(), 1'000'002U);
}

TEST_F(LineSplitterTest, ByteByByteIsTheSame) {
  using namespace std::string_literals;
  const std::string text = "one\ntwo\r\nthree\rfour\n\nfi\0ve"s;
  feed(text);
  finish();
  auto whole = std::exchange(lines_, {});
  splitter_ = {};
  for (char c : text) feed({&c, 1});
  finish();
  EXPECT_EQ(lines_, whole);
}

TEST(LineSinkTest, NeverBlocksAndKeepsOrder) {
  // A pipe takes the place of standard output.
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Fd saved(::dup(STDOUT_FILENO));
  ::dup2(ends[1], STDOUT_FILENO);
  ::close(ends[1]);
  std::string expected, got;
  bool returned_early = false;
  {
    LineSink sink;
    for (int i = 0; i < 50; ++i) {
      std::string line = std::to_string(i) + std::string(10'000, 'x') + "\n";
      expected += line;
      sink.add(STDOUT_FILENO, line);
    }
    EXPECT_EQ(sink.pending_bytes(), expected.size());
    EXPECT_EQ(sink.waiting_for(), STDOUT_FILENO);
    sink.write_some();  // a pipe holds 64 KiB: it must come back without having written all
    returned_early = sink.pending_bytes() > 0;
    char chunk[65536];
    while (got.size() < expected.size()) {
      ssize_t n = ::read(ends[0], chunk, sizeof chunk);
      ASSERT_GT(n, 0);
      got.append(chunk, static_cast<std::size_t>(n));
      sink.write_some();
    }
    EXPECT_EQ(sink.pending_bytes(), 0U);
    EXPECT_EQ(sink.waiting_for(), -1);
  }
  ::dup2(saved.get(), STDOUT_FILENO);
  ::close(ends[0]);
  EXPECT_TRUE(returned_early);
  EXPECT_TRUE(got == expected);
}

}  // namespace
}  // namespace kolo::launch
