#include "tune/output/progress.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text_table.h"
#include "tune/output/study_table.h"

namespace kolo::tune {
namespace {

using testing::HasSubstr;

StudyView study() {
  StudyView view;
  view.name = "first";
  view.objectives = {{"loss", search::Direction::minimize}};
  view.elapsed = 75;
  view.counts[static_cast<int>(TrialStatus::running)] = 2;
  view.counts[static_cast<int>(TrialStatus::terminated)] = 9;
  view.counts[static_cast<int>(TrialStatus::error)] = 1;
  view.created = 12;
  view.total = 40;
  view.reports = 77;
  view.resources = "2/2 CPUs";
  view.scheduler = "asha: bracket 0: 4 at 9, 9 at 3";
  TrialInfo trial;
  trial.number = 7;
  trial.id = "abcde_00007";
  trial.status = TrialStatus::running;
  trial.config = Value{{"lr", 0.01}, {"model", {{"units", 64}}}};
  trial.last_result = Value{{"loss", 0.25}};
  trial.iteration = 5;
  trial.seconds = 1.5;
  view.best = trial;
  view.shown = {trial, trial};
  return view;
}

TEST(Progress, ALineSaysWhatMatters) {
  EXPECT_EQ(draw_line(study()),
            "first: 10/40 trials, 2 running, 1 failed, 0:01:15, about 0:03:45 left, "
            "best loss 0.25 (trial 7, lr=0.01, model/units=64)");
}

TEST(Progress, NoTextOfATrialReachesTheTerminalAsAnOrder) {
  auto view = study();
  view.name = "na\x1b[1mme";
  view.objectives = {{"lo\x1b[31mss", search::Direction::minimize}};
  view.scheduler = "asha\x07";
  for (auto* trial : {&*view.best, view.shown.data()}) {
    trial->config = Value{{"l\x1b[2Jr", "\x1b]0;title\x07"}};
    trial->last_result = Value{{"lo\x1b[31mss", "a\nb"}};
  }
  const auto has_control = [](const std::string& line) {
    return std::any_of(line.begin(), line.end(), [](unsigned char c) { return c < 0x20; });
  };
  EXPECT_FALSE(has_control(draw_line(view)));
  for (const auto& line : draw_table(view, 200, 30)) EXPECT_FALSE(has_control(line)) << line;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

TEST(Progress, TheTableHasBarBestRungsAndTrials) {
  const std::string text = joined(draw_table(study(), 100, 40));
  EXPECT_THAT(text, HasSubstr("[#######-----------------------]  25 %"));
  EXPECT_THAT(text, HasSubstr("2/2 CPUs, 77 reports"));
  EXPECT_THAT(text, HasSubstr("best loss 0.25"));
  EXPECT_THAT(text, HasSubstr("4 at 9"));
  EXPECT_THAT(text, HasSubstr("abcde_00007  RUNNING  5     1.5       0.25  0.01  64"));
  EXPECT_THAT(text, HasSubstr("… 10 more"));
}

TEST(Progress, TheTableFitsEveryTerminal) {
  StudyView view = study();
  view.name = "größe-" + std::string(40, 'x');
  view.scheduler = "asha";
  for (int bracket = 0; bracket < 30; ++bracket)
    view.scheduler += fmt::format("\nbracket {}: {}", bracket, std::string(100, '9'));
  view.shown.front().config = Value{{"text", "two\nlines\x1b[2J"}};
  for (const std::size_t width : {1U, 10U, 30U, 60U, 80U, 120U})
    for (const std::size_t height : {1U, 3U, 10U, 24U, 50U}) {
      const auto lines = draw_table(view, width, height);
      EXPECT_LE(lines.size(), height);
      for (const auto& line : lines) {
        EXPECT_LE(letters_of(line), width) << line;
        EXPECT_TRUE(std::none_of(line.begin(), line.end(), [](char c) {
          return c >= 0 && c < ' ';
        })) << line;
      }
    }
  const std::string text = joined(draw_table(study(), 79, 23));
  EXPECT_THAT(text, HasSubstr("] "));
  EXPECT_THAT(text, HasSubstr("77 reports"));
}

/// A table on a terminal, and what it writes there.
class OnTerminal {
 public:
  OnTerminal() {
    if (::openpty(&ours_, &theirs_, nullptr, nullptr, nullptr) != 0) throw_errno("openpty");
    stream_ = ::fdopen(theirs_, "w");
    table_ = make_live_table(stream_);
  }
  ~OnTerminal() {
    std::fclose(stream_);
    ::close(ours_);
  }
  std::string draw(const StudyView& view, unsigned short columns, unsigned short rows) {
    const winsize size{rows, columns, 0, 0};
    EXPECT_EQ(::ioctl(theirs_, TIOCSWINSZ, &size), 0);
    table_->on_end([&](std::size_t) { return view; });
    // A terminal hands out what was written in pieces; a table ends by clearing what is below it.
    std::string text;
    std::array<char, 4096> piece{};
    while (!text.ends_with("\x1b[J")) {
      const auto count = ::read(ours_, piece.data(), piece.size());
      if (count <= 0) break;
      text.append(piece.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  int ours_ = -1, theirs_ = -1;
  std::FILE* stream_ = nullptr;
  std::shared_ptr<Observer> table_;
};

TEST(Progress, ATableIsRedrawnInPlace) {
  OnTerminal terminal;
  const std::string first = terminal.draw(study(), 80, 24);
  const auto lines = std::count(first.begin(), first.end(), '\n');
  EXPECT_THAT(first, testing::StartsWith("study first"));
  EXPECT_THAT(terminal.draw(study(), 80, 24),
              testing::StartsWith(fmt::format("\x1b[{}Fstudy first", lines)));
  // Whatever its width: no line wraps, and the next table begins where this one did.
  for (const unsigned short columns : {40, 80, 200}) {
    OnTerminal wide;
    const std::string drawn = wide.draw(study(), columns, 24);
    const auto rows = draw_table(study(), columns - 1U, 23);
    for (const auto& row : rows) EXPECT_LT(letters_of(row), columns) << row;
    EXPECT_EQ(std::count(drawn.begin(), drawn.end(), '\n'), std::ssize(rows));
    EXPECT_THAT(wide.draw(study(), columns, 24),
                testing::StartsWith(fmt::format("\x1b[{}Fstudy first", rows.size())));
  }
  // In a narrower terminal the long lines take several, which have to go, too.
  std::size_t wrapped = 0;
  for (const auto& line : draw_table(study(), 79, 23))
    wrapped += std::max<std::size_t>(1, (letters_of(line) + 39) / 40);
  EXPECT_GT(wrapped, static_cast<std::size_t>(lines));
  EXPECT_THAT(terminal.draw(study(), 40, 24),
              testing::StartsWith(fmt::format("\x1b[{}Fstudy first", wrapped)));
}

TEST(Progress, EventsAreJsonLines) {
  TempDir scratch;
  std::FILE* file = std::fopen((scratch.path() / "events").c_str(), "w");
  {
    auto events = make_json_events(file);
    const auto view = study();
    events->on_trial_start(*view.best);
    events->on_trial_result(*view.best, Value{{"loss", 0.25}, {"config", {{"lr", 0.01}}}});
    events->on_trial_complete(*view.best);
    events->on_message("the study waits");
    events->on_end([&](std::size_t) { return view; });
  }
  std::fclose(file);
  std::istringstream lines(read_file(scratch.path() / "events"));
  std::vector<std::string> kinds;
  for (std::string line; std::getline(lines, line);)
    kinds.push_back(parse_json(line, "event")["event"]);
  EXPECT_THAT(kinds, testing::ElementsAre("trial_start", "trial_result", "trial_complete",
                                          "message", "study"));
}

}  // namespace
}  // namespace kolo::tune
