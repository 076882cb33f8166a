// Lines of trials that are wrong, and files of them that are none.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/errors.h"
#include "base/files.h"
#include "tune/protocol/report_file.h"
#include "tune/protocol/trial_protocol.h"

namespace kolo::tune {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

TEST(HostileLines, IterationsBeginAtOne) {
  EXPECT_EQ(parse_trial_line(R"({"kolo": 1, "report": {}, "iteration": 1})").iteration, 1);
  for (const char* line : {R"({"kolo": 1, "report": {}, "iteration": 0})",
                           R"({"kolo": 1, "report": {}, "iteration": -1000000000})",
                           R"({"kolo": 1, "report": {}, "iteration": 1.5})"})
    EXPECT_THROW(parse_trial_line(line), Error) << line;
}

TEST(HostileLines, ErrorsShowTheirBeginning) {
  const std::string much(5'000'000, 'x');
  for (const std::string& line :
       {"[\"" + much + "\"]", R"({"kolo": 1, ")" + much + "\": 1}", R"({"kolo": ")" + much + "\"}"})
    try {
      parse_trial_line(line);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_LT(error.message().size(), 1000U);
    }
  EXPECT_LT(parse_trial_line(R"({"kolo": 1, "error": ")" + much + "\"}").error.size(), 10'000U);
}

TEST(HostileLines, HaveAsManyValuesAsMemoryHolds) {
  std::string line = R"({"kolo": 1, "report": {"loss": 1, "table": [0)";
  for (int i = 0; i < 1'000'000; ++i) line += ",0";
  EXPECT_THROW(parse_trial_line(line + "]}}"), Error);
}

class ReportFileTest : public testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  ReportFile::Rest read(bool has_ended = false) {
    return file_.read(has_ended, [this](const TrialLine& line) {
      losses_.push_back(line.metrics.at_path("loss").as_integer());
    });
  }
  void append_many() {
    std::string lines;
    for (int i = 0; i < 10'000; ++i) lines += "{\"loss\": 1}\n";
    append(lines);
  }
  void append_nothing(std::uintmax_t bytes) {
    fs::resize_file(path_, fs::file_size(path_) + bytes);
  }

  TempDir scratch_;
  fs::path path_ = scratch_.path() / "reports.jsonl";
  ReportFile file_{path_};
  std::vector<std::int64_t> losses_;
};

TEST_F(ReportFileTest, IsReadAsItGrows) {
  read();
  append("{\"loss\": 1}\n\n{\"loss\": 2}\n{\"lo");
  read();
  EXPECT_THAT(losses_, ElementsAre(1, 2));
  append("ss\": 3}\n{\"loss\": 4}");
  read();
  EXPECT_THAT(losses_, ElementsAre(1, 2, 3));
  read(/*has_ended=*/true);
  EXPECT_THAT(losses_, ElementsAre(1, 2, 3, 4));
}

TEST_F(ReportFileTest, ALineThatIsRefusedIsReadOnce) {
  append("{\"loss\": 1}\n7\n{\"loss\": 2}\n");
  EXPECT_THROW(read(), Error);
  EXPECT_THAT(losses_, ElementsAre(1));
  read();
  EXPECT_THAT(losses_, ElementsAre(1, 2));
}

TEST_F(ReportFileTest, LongLinesAreWhole) {
  append("{\"note\": \"" + std::string(1'000'000, 'x') + "\", \"loss\": 1}\n{\"loss\": 2}\n");
  read();
  EXPECT_THAT(losses_, ElementsAre(1, 2));
}

TEST_F(ReportFileTest, MayHaveAnySizeInOneLine) {
  append("{\"loss\": 1}\n");
  ASSERT_EQ(::truncate(path_.c_str(), off_t{1} << 40), 0);
  for (int look = 0; look < 3; ++look)
    EXPECT_THAT([this] { read(); },
                testing::ThrowsMessage<Error>(testing::HasSubstr("a line is longer")));
  EXPECT_THAT(losses_, ElementsAre(1));
}

TEST_F(ReportFileTest, IsNoPipeAndNoLink) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THROW(read(), Error);
  fs::remove(path_);
  fs::create_symlink("/dev/zero", path_);
  EXPECT_THROW(read(), Error);
}

TEST_F(ReportFileTest, MayGrowAsItIsRead) {
  append("{\"loss\": 1}\n");
  constexpr int kEnough = 100'000;
  int lines = 0;
  const auto take = [&](const TrialLine&) {
    if (++lines < kEnough) append("{\"loss\": 1}\n");
  };
  EXPECT_EQ(file_.read(false, take), ReportFile::Rest::more);
  EXPECT_LT(lines, kEnough);
  const int first = lines;
  EXPECT_EQ(file_.read(false, take), ReportFile::Rest::more);
  EXPECT_EQ(lines, first);
  file_.let_go_on();
  EXPECT_EQ(file_.read(false, take), ReportFile::Rest::more);
  EXPECT_GT(lines, first);
}

TEST_F(ReportFileTest, IsReadToTheEndInParts) {
  append_many();
  append("{\"loss\": 2}");
  while (read(/*has_ended=*/true) == ReportFile::Rest::more) file_.let_go_on();
  EXPECT_EQ(losses_.size(), 10'001U);
  EXPECT_EQ(losses_.back(), 2);
}

TEST_F(ReportFileTest, IsGivenUpWhenItGrowsFasterThanItIsRead) {
  append_many();
  EXPECT_EQ(read(), ReportFile::Rest::more);
  append_nothing(ReportFile::kMostUnread + 1);
  EXPECT_EQ(read(), ReportFile::Rest::too_much);
  const auto before = losses_.size();
  file_.let_go_on();
  EXPECT_EQ(read(/*has_ended=*/true), ReportFile::Rest::too_much);
  EXPECT_EQ(losses_.size(), before);
}

TEST_F(ReportFileTest, MayHaveGrownWhileNobodyRead) {
  file_ = ReportFile(path_, ReportFile::Past::any);
  append_many();
  append_nothing(ReportFile::kMostUnread);
  EXPECT_EQ(read(), ReportFile::Rest::more);
  append_nothing(ReportFile::kMostUnread);
  EXPECT_EQ(read(), ReportFile::Rest::more);
  append_nothing(1);
  EXPECT_EQ(read(), ReportFile::Rest::too_much);
}

}  // namespace
}  // namespace kolo::tune
