// Observers are called after each step, and ask for a view of the study only when their period is
// over, because making one takes time. LiveTable remembers how wide each line was, computes how
// many rows these lines take in the terminal as it is now, and moves the cursor up by so many. The
// table has at least one row less than the terminal, since the cursor cannot reach what has
// scrolled away. A message has gone to the log when LiveTable hears of it, so the next table is
// drawn below it. Everything is flushed at once, for readers of pipes.
#include "tune/output/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/text_table.h"
#include "base/utf8.h"
#include "tune/output/study_table.h"
#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kRedraw = 200ms;
constexpr auto kPlainPeriod = 5s;
constexpr const char* kClearLine = "\x1b[K";   // from the cursor on
constexpr const char* kClearBelow = "\x1b[J";  // likewise
constexpr std::size_t kMostTrials = 20;        // in the table
/// The size of the terminal behind a stream; a usual one where there is none.
winsize size_of(std::FILE* stream) {
  winsize size{};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    size.ws_col = 80;
    size.ws_row = 24;
  }
  return size;
}

class LiveTable final : public Observer {
 public:
  explicit LiveTable(std::FILE* stream) : stream_(stream) {}

  void on_step(const std::function<StudyView(std::size_t)>& view) override {
    if (steady_clock::now() - drawn_ >= kRedraw) on_end(view);
  }
  void on_end(const std::function<StudyView(std::size_t)>& view) override {
    drawn_ = steady_clock::now();
    const winsize size = size_of(stream_);
    const std::size_t width = size.ws_col > 1 ? size.ws_col - 1U : 1;
    const std::size_t height = size.ws_row > 1 ? size.ws_row - 1U : 1;
    std::string out = move_to_top(size.ws_col, height);
    shown_.clear();
    for (const auto& line : draw_table(view(kMostTrials), width, height)) {
      // Line by line: some terminals keep a copy of a screen that is cleared at once.
      out += line + kClearLine + "\n";
      shown_.push_back(letters_of(line));
    }
    out += kClearBelow;
    std::fputs(out.c_str(), stream_);
    std::fflush(stream_);
  }
  void on_message(const std::string& /*text*/) override { shown_.clear(); }  // it is in the log
  [[nodiscard]] std::chrono::milliseconds patience() const override { return kRedraw; }

 private:
  /// Back to the first line of what is shown. A terminal that has become narrower
  /// since then shows a long line as several.
  [[nodiscard]] std::string move_to_top(std::size_t width, std::size_t height) const {
    std::size_t lines = 0;
    for (const std::size_t letters : shown_)
      lines += std::max<std::size_t>(1, (letters + width - 1) / width);
    return lines == 0 ? "" : fmt::format("\x1b[{}F", std::min(lines, height));
  }

  std::FILE* stream_;
  steady_clock::time_point drawn_{};
  std::vector<std::size_t> shown_;  // letters of each line
};

class PlainLines final : public Observer {
 public:
  PlainLines(std::FILE* stream, std::chrono::milliseconds period)
      : stream_(stream), period_(period), said_(steady_clock::now()) {}

  void on_step(const std::function<StudyView(std::size_t)>& view) override {
    if (steady_clock::now() - said_ >= period_) on_end(view);
  }
  void on_end(const std::function<StudyView(std::size_t)>& view) override {
    said_ = steady_clock::now();
    fmt::print(stream_, "{}\n", draw_line(view(0)));
    std::fflush(stream_);
  }
  void on_trial_error(const TrialInfo& trial) override {
    fmt::print(stream_, "trial {} failed: {}\n", trial.id, printable_lines(trial.error));
    std::fflush(stream_);
  }

 private:
  std::FILE* stream_;
  std::chrono::milliseconds period_;
  steady_clock::time_point said_;
};

class JsonEvents final : public Observer {
 public:
  explicit JsonEvents(std::FILE* stream) : stream_(stream) {}

  void on_trial_start(const TrialInfo& trial) override {
    say("trial_start", {{"trial", trial.number}, {"id", trial.id}, {"config", trial.config}});
  }
  void on_trial_result(const TrialInfo& trial, const Value& result) override {
    Value::Dict brief = result.as_dict();
    brief.erase("config");
    say("trial_result", {{"trial", trial.number}, {"result", Value(std::move(brief))}});
  }
  void on_trial_complete(const TrialInfo& trial) override {
    say("trial_complete", {{"trial", trial.number},
                           {"stopped", trial.stopped},
                           {"why", trial.why},
                           {"iterations", trial.iteration}});
  }
  void on_trial_error(const TrialInfo& trial) override {
    say("trial_error", {{"trial", trial.number}, {"error", trial.error}});
  }
  void on_message(const std::string& text) override { say("message", {{"text", text}}); }
  void on_step(const std::function<StudyView(std::size_t)>& view) override {
    if (steady_clock::now() - said_ >= 1s) on_end(view);
  }
  void on_end(const std::function<StudyView(std::size_t)>& view) override {
    said_ = steady_clock::now();
    study(view(0));
  }

 private:
  void study(const StudyView& view) {
    Value::Dict fields{{"name", view.name},
                       {"elapsed", view.elapsed},
                       {"created", view.created},
                       {"done", done_of(view)},
                       {"running", view.counts[static_cast<int>(TrialStatus::running)]},
                       {"failed", view.counts[static_cast<int>(TrialStatus::error)]},
                       {"reports", view.reports},
                       {"over", view.over}};
    if (view.total) fields.emplace("total", *view.total);
    if (view.best) fields.emplace("best", view.best->number);
    say("study", std::move(fields));
  }
  void say(const char* event, Value::Dict fields) {
    fields.emplace("event", event);
    fmt::print(stream_, "{}\n", encode(Value(std::move(fields))));
    std::fflush(stream_);
  }

  std::FILE* stream_;
  steady_clock::time_point said_{};
};

}  // namespace

std::shared_ptr<Observer> make_live_table(std::FILE* stream) {
  return std::make_shared<LiveTable>(stream);
}
std::shared_ptr<Observer> make_plain_lines(std::FILE* stream, std::chrono::milliseconds period) {
  return std::make_shared<PlainLines>(stream, period);
}
std::shared_ptr<Observer> make_json_events(std::FILE* stream) {
  return std::make_shared<JsonEvents>(stream);
}

std::vector<std::shared_ptr<Observer>> default_observers(const Options& options) {
  if (options.verbose <= 0) return {};
  if (::isatty(STDOUT_FILENO) != 0) return {make_live_table(stdout)};
  return {make_plain_lines(stdout, kPlainPeriod)};
}

}  // namespace kolo::tune
