#include "tune/output/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kRedraw = 200ms;
constexpr auto kPlainPeriod = 5s;
constexpr std::size_t kBarWidth = 30;

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string short_value(const Value& value) {
  if (value.is_number() && !value.is_integer()) return fmt::format("{:.5g}", value.as_number());
  return value.is_string() ? value.as_string() : value.to_string();
}

std::int64_t done_of(const StudyView& view) {
  return view.counts[static_cast<int>(TrialStatus::terminated)] +
         view.counts[static_cast<int>(TrialStatus::error)];
}

/// What is left, if it goes on as it did; none at the beginning or without a plan.
std::optional<double> time_left(const StudyView& view) {
  const auto done = done_of(view);
  if (!view.total || done == 0 || *view.total <= done) return std::nullopt;
  return view.elapsed / static_cast<double>(done) * static_cast<double>(*view.total - done);
}

std::string counts_text(const StudyView& view) {
  std::string text = fmt::format("{}", done_of(view));
  if (view.total) text += fmt::format("/{}", *view.total);
  text += " trials";
  constexpr std::pair<TrialStatus, const char*> kNamed[] = {{TrialStatus::running, "running"},
                                                            {TrialStatus::paused, "paused"},
                                                            {TrialStatus::pending, "pending"},
                                                            {TrialStatus::error, "failed"}};
  for (const auto& [status, name] : kNamed)
    if (const auto count = view.counts[static_cast<int>(status)]; count > 0)
      text += fmt::format(", {} {}", count, name);
  return text;
}

std::string best_text(const StudyView& view) {
  if (!view.best || view.objectives.empty()) return {};
  const std::string& metric = view.objectives.front().metric;
  const Value* value = view.best->last_result.find_path(metric);
  std::string text = fmt::format("best {} {} (trial {}", metric,
                                 value != nullptr ? short_value(*value) : "?", view.best->number);
  for (const auto& [key, item] : flatten(view.best->config))
    text += fmt::format(", {}={}", key, short_value(item));
  return text + ")";
}

/// Columns as wide as their widest cell, cut at the width.
std::string columns_text(const std::vector<std::vector<std::string>>& rows, std::size_t width) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += fmt::format("{}{:<{}}", i > 0 ? "  " : " ", row[i], widths[i]);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line.substr(0, width) + "\n";
  }
  return text;
}

class LiveTable final : public Observer {
 public:
  explicit LiveTable(std::FILE* stream) : stream_(stream) {}

  void on_step(const std::function<StudyView(std::size_t)>& view) override {
    if (steady_clock::now() - drawn_ >= kRedraw) on_end(view);
  }
  void on_end(const std::function<StudyView(std::size_t)>& view) override {
    drawn_ = steady_clock::now();
    winsize size{};
    if (::ioctl(::fileno(stream_), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
      size.ws_col = 100;
      size.ws_row = 24;
    }
    const std::size_t rows = size.ws_row > 12 ? std::min<std::size_t>(size.ws_row - 10, 20) : 3;
    const std::string text = draw_table(view(rows), size.ws_col - 1U);
    std::string out = lines_ > 0 ? fmt::format("\x1b[{}F\x1b[J", lines_) : "";
    out += text;
    lines_ = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    std::fputs(out.c_str(), stream_);
    std::fflush(stream_);
  }
  void on_message(const std::string& /*text*/) override { lines_ = 0; }  // it is in the log
  [[nodiscard]] std::chrono::milliseconds patience() const override { return kRedraw; }

 private:
  std::FILE* stream_;
  steady_clock::time_point drawn_{};
  std::size_t lines_ = 0;
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
    fmt::print(stream_, "trial {} failed: {}\n", trial.id, trial.error);
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

std::string draw_line(const StudyView& view) {
  std::string text =
      fmt::format("{}: {}, {}", view.name, counts_text(view), clock_text(view.elapsed));
  if (const auto left = time_left(view)) text += fmt::format(", about {} left", clock_text(*left));
  if (const std::string best = best_text(view); !best.empty()) text += ", " + best;
  return text;
}

std::string draw_table(const StudyView& view, std::size_t width) {
  std::string text =
      fmt::format("study {}: {}", view.name, counts_text(view)).substr(0, width) + "\n";
  if (view.total && *view.total > 0) {
    const double share =
        std::min(1.0, static_cast<double>(done_of(view)) / static_cast<double>(*view.total));
    const auto full = static_cast<std::size_t>(share * kBarWidth);
    text += fmt::format("[{}{}] {:3.0f} %  ", std::string(full, '#'),
                        std::string(kBarWidth - full, '-'), share * 100);
  }
  text += clock_text(view.elapsed);
  if (const auto left = time_left(view)) text += fmt::format(", about {} left", clock_text(*left));
  text += fmt::format(", {}, {} reports\n", view.resources, view.reports);
  if (const std::string best = best_text(view); !best.empty()) text += best.substr(0, width) + "\n";
  if (view.scheduler != "fifo" && !view.scheduler.empty()) {
    std::string lines = view.scheduler;
    if (lines.back() != '\n') lines += '\n';
    text += lines;
  }
  if (view.shown.empty()) return text;
  std::vector<std::vector<std::string>> rows;
  auto& header = rows.emplace_back();
  header = {"trial", "status", "iter", "time (s)"};
  for (const auto& objective : view.objectives) header.push_back(objective.metric);
  std::vector<std::string> parameters;
  for (const auto& [key, value] : flatten(view.shown.front().config)) parameters.push_back(key);
  header.insert(header.end(), parameters.begin(), parameters.end());
  for (const auto& trial : view.shown) {
    auto& row = rows.emplace_back();
    row = {trial.id, std::string(to_string(trial.status)) + (trial.stopped ? " (early)" : ""),
           std::to_string(trial.iteration), fmt::format("{:.1f}", trial.seconds)};
    for (const auto& objective : view.objectives) {
      const Value* value = trial.last_result.find_path(objective.metric);
      row.push_back(value != nullptr ? short_value(*value) : "");
    }
    for (const auto& path : parameters) {
      const Value* value = trial.config.find_path(path);
      row.push_back(value != nullptr ? short_value(*value) : "");
    }
  }
  text += columns_text(rows, width);
  const auto hidden = view.created - static_cast<std::int64_t>(view.shown.size());
  if (hidden > 0) text += fmt::format(" … {} more\n", hidden);
  return text;
}

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
