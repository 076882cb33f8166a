// One evaluation: what a run function is given, and what it answers. The names are DeepHyper's.
//
//   hps::RunResult run(hps::RunningJob& job) {
//     const double x = job["x"].as_number();
//     return -x * x;  // searches maximise
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kolo/error.h"
#include "kolo/tune/session.h"

namespace kolo::hps {

using search::Value;

/// The name under which an objective is reported: "objective", or "objective_1" where there are
/// several.
inline std::string objective_name(std::size_t place, std::size_t objectives) {
  return objectives == 1 ? "objective" : "objective_" + std::to_string(place);
}

/// A running evaluation. Valid during the call of the run function; one thread at a time.
class RunningJob {
 public:
  /// Without a session (null) nothing is recorded, and the evaluation is never stopped.
  RunningJob(std::int64_t id, Value parameters, std::filesystem::path directory,
             std::filesystem::path log_dir = {}, tune::Session* session = nullptr,
             std::size_t objectives = 1)
      : id_(id),
        parameters_(std::move(parameters)),
        directory_(std::move(directory)),
        log_dir_(std::move(log_dir)),
        session_(session),
        objectives_(objectives) {}

  /// The configuration.
  [[nodiscard]] const Value& parameters() const noexcept { return parameters_; }
  /// One of its values, by name or path ("model/units"). Throws not_found.
  [[nodiscard]] const Value& operator[](std::string_view name) const {
    return parameters_.at_path(name);
  }
  [[nodiscard]] std::int64_t id() const noexcept { return id_; }

  /// Intermediate objectives after so much of the budget (epochs, say): all of the problem's, in
  /// their order. The last ones recorded do not replace what the run function returns. In an
  /// evaluation of several ranks every rank records. Throws invalid_argument when there are more or
  /// fewer than the problem has.
  void record(double budget, const std::vector<double>& objectives) {
    if (objectives.size() != objectives_)
      throw Error(ErrorCode::invalid_argument,
                  "record() was given " + std::to_string(objectives.size()) +
                      " objectives, and the problem has " + std::to_string(objectives_));
    if (session_ == nullptr || stopped_) return;
    Value::Dict report{{"budget", budget}};
    for (std::size_t i = 0; i < objectives.size(); ++i)
      report.emplace(objective_name(i, objectives_), objectives[i]);
    stopped_ = !session_->try_report(Value(std::move(report)));
  }
  /// The same for a problem with one objective.
  void record(double budget, double objective) { record(budget, std::vector{objective}); }
  /// True when the evaluation must end early: return the result so far.
  [[nodiscard]] bool stopped() const {
    return stopped_ || (session_ != nullptr && session_->should_stop());
  }

  /// The folder for files of this evaluation.
  [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }
  /// The folder of the whole search, whose save/ holds models, histories and configurations;
  /// empty = nothing is kept.
  [[nodiscard]] const std::filesystem::path& log_dir() const noexcept { return log_dir_; }

 private:
  std::int64_t id_;
  Value parameters_;
  std::filesystem::path directory_, log_dir_;
  tune::Session* session_;
  std::size_t objectives_;
  bool stopped_ = false;
};

/// One objective, several, or a failure: a text that begins with "F" ("F_timeout"). An objective
/// that is not a number counts as a failure. Searches maximise.
struct RunResult {
  RunResult(double objective) : objectives{objective} {}
  RunResult(std::vector<double> several) : objectives(std::move(several)) {}
  RunResult(std::string why) : failure(std::move(why)) {}
  RunResult(const char* why) : failure(why) {}

  std::vector<double> objectives{};
  std::string failure{};
  /// Columns "m:NAME" of results.csv: numbers, truths and texts.
  std::map<std::string, Value> metadata{};

  [[nodiscard]] bool failed() const noexcept { return !failure.empty(); }
};

using RunFunction = std::function<RunResult(RunningJob&)>;

}  // namespace kolo::hps
