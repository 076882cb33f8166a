// What ranks write arrives whole, in order and marked.
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "base/files.h"
#include "kolo_process.h"

namespace kolo::test {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;
namespace fs = std::filesystem;

std::vector<std::string> shell(int ranks, const std::string& script) {
  return {"run", "-np", std::to_string(ranks), "sh", "-c", script};
}

TEST(RunOutputTest, LinesCarryRankAndStream) {
  Finished run = run_kolo(shell(2, "echo out $KOLO_RANK; echo err $KOLO_RANK >&2"));
  EXPECT_THAT(sorted_lines(run.out), ElementsAre("[0]<stdout>:out 0", "[1]<stdout>:out 1"));
  EXPECT_THAT(sorted_lines(run.err), ElementsAre("[0]<stderr>:err 0", "[1]<stderr>:err 1"));
}

TEST(RunOutputTest, EmptyLinesAndALastLineWithoutEnd) {
  Finished run = run_kolo(shell(1, "printf 'a\\n\\nb'"));
  EXPECT_EQ(run.out, "[0]<stdout>:a\n[0]<stdout>:\n[0]<stdout>:b\n");
}

TEST(RunOutputTest, CarriageReturnsEndLinesToo) {
  Finished run = run_kolo(shell(1, "printf '10%%\\r20%%\\rdone\\r\\nx\\n'"));
  EXPECT_EQ(run.out, "[0]<stdout>:10%\r[0]<stdout>:20%\r[0]<stdout>:done\r\n[0]<stdout>:x\n");
}

TEST(RunOutputTest, LinesOfManyRanksAreNeverTornAndStayInOrder) {
  // Both streams into one, as `2>&1` does; each line is a word repeated, written in small pieces.
  constexpr int kRanks = 4, kLines = 300;
  KoloProcess::Options options;
  Finished run = run_kolo(
      {"run", "-np", std::to_string(kRanks), "sh", "-c",
       "i=0; while [ $i -lt 300 ]; do printf \"$i $KOLO_RANK\"; printf -- \"-$KOLO_RANK\"; "
       "printf -- \"-$KOLO_RANK end\\n\"; i=$((i+1)); done"},
      options);
  EXPECT_EQ(run.status, 0);
  std::map<int, int> next;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) {
    const int rank = std::stoi(line.substr(1));
    const std::string r = std::to_string(rank);
    EXPECT_EQ(line, "[" + r + "]<stdout>:" + std::to_string(next[rank]++) + " " + r + "-" + r +
                        "-" + r + " end");
  }
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(next[rank], kLines) << "of rank " << rank;
}

TEST(RunOutputTest, LinesOfAMegabyteAreNotTorn) {
  // head -c of zeros, made to letters: one line of 1 MB per rank and turn.
  Finished run = run_kolo(
      shell(3, "for i in 1 2 3; do head -c 1000000 /dev/zero | tr '\\0' $KOLO_RANK; echo; done"));
  EXPECT_EQ(run.status, 0);
  std::istringstream lines(run.out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const std::string prefix = line.substr(0, 12);
    ASSERT_THAT(prefix, MatchesRegex("\\[[012]\\]<stdout>:"));
    ASSERT_EQ(line.size(), 12U + 1'000'000U);
    ASSERT_EQ(line.find_first_not_of(line[1], 12), std::string::npos);
  }
  EXPECT_EQ(count, 9);
}

TEST(RunOutputTest, ManyMegabytesArriveComplete) {
  Finished run =
      run_kolo(shell(2, "yes 0123456789012345678901234567890123456789 | head -n 200000"));
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out.size(), 2U * 200'000U * (12 + 41));
}

TEST(RunOutputTest, BinaryBytesPassThrough) {
  Finished run = run_kolo(shell(1, "printf '\\000\\001\\377\\200x\\n'"));
  EXPECT_EQ(run.out, std::string("[0]<stdout>:\0\x01\xff\x80x\n", 18));
}

TEST(RunOutputTest, TimestampsComeFirst) {
  Finished run = run_kolo({"run", "-np", "1", "--prefix-output-with-timestamp", "echo", "hi"});
  EXPECT_THAT(run.out, MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
                                    "\\.[0-9]{3} \\[0\\]<stdout>:hi\n"));
}

TEST(RunOutputTest, FilesHoldTheBytesAsTheyAre) {
  TempDir dir;
  const fs::path base = dir.path() / "new" / "out";
  Finished run = run_kolo({"run", "-np", "11", "--output-filename", base.string(), "sh", "-c",
                           "printf \"$KOLO_RANK\\rx\"; printf e >&2"});
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(read_file(base / "rank.00" / "stdout"), "0\rx");
  EXPECT_EQ(read_file(base / "rank.10" / "stdout"), "10\rx");
  EXPECT_EQ(read_file(base / "rank.10" / "stderr"), "e");
  // One rank alone needs no padding.
  EXPECT_EQ(
      run_kolo({"run", "-np", "1", "--output-filename", (base / "one").string(), "true"}).status,
      0);
  EXPECT_EQ(read_file(base / "one" / "rank.0" / "stdout"), "");
}

TEST(RunOutputTest, ADirectoryThatCannotBeMadeIsSaidBeforeTheStart) {
  Finished run = run_kolo({"run", "-np", "1", "--output-filename", "/proc/nowhere", "echo", "hi"});
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, ::testing::HasSubstr("cannot create /proc/nowhere"));
}

}  // namespace
}  // namespace kolo::test
