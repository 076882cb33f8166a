// The protocol between a study and trials that are programs: one JSON object per line, version 1.
// docs/trial-protocol.md describes it for other languages.
#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "kolo/search/value.h"
#include "tune/executor/executor.h"

namespace kolo::tune {

inline constexpr int kTrialProtocol = 1;
/// Longer lines are an error of the trial.
inline constexpr std::size_t kLongestLine = 16U << 20;

/// What a line takes while the study works on it. "0," is two bytes of a line, and many more as a
/// value.
inline std::size_t cost_of(std::string_view line) {
  constexpr std::size_t kOfLine = 1024, kOfValue = 64;
  const auto values = static_cast<std::size_t>(std::count(line.begin(), line.end(), ','));
  return line.size() + kOfLine + kOfValue * values;
}

// Variables of a trial's environment.
inline constexpr const char* kTrialFd = "KOLO_TRIAL_FD";            // an open stream socket
inline constexpr const char* kTrialSocket = "KOLO_TRIAL_SOCKET";    // path, for helpers
inline constexpr const char* kTrialToken = "KOLO_TRIAL_TOKEN";      // of the trial, for the socket
inline constexpr const char* kTrialReports = "KOLO_TRIAL_REPORTS";  // a file instead of sockets
inline constexpr const char* kTrialId = "KOLO_TRIAL_ID";
inline constexpr const char* kTrialName = "KOLO_TRIAL_NAME";
inline constexpr const char* kTrialDir = "KOLO_TRIAL_DIR";
inline constexpr const char* kTrialIteration = "KOLO_TRIAL_ITERATION";
inline constexpr const char* kTrialCheckpoint = "KOLO_TRIAL_CHECKPOINT";
inline constexpr const char* kTrialConfig = "KOLO_TRIAL_CONFIG";  // path of params.json

/// A line of a trial.
struct TrialLine {
  enum class Kind { report, result, checkpoint, hello, failure };
  Kind kind = Kind::report;
  Value metrics{};
  std::filesystem::path checkpoint{};
  std::string token{};                      ///< of a hello
  std::string error{};                      ///< of a failure
  bool saves_on_request = false;            ///< of a hello
  std::optional<std::int64_t> iteration{};  ///< of a report that may be made twice
  bool is_plain = false;                    ///< a dictionary of metrics and nothing else
};

/// Throws invalid_argument, saying what is wrong with it.
TrialLine parse_trial_line(std::string_view line);

// All end with a newline.
std::string hello_line(std::string_view token, bool saves_on_request);
/// With `iteration`, another report of the same number is known to be the same.
std::string report_line(const Value& metrics, const std::filesystem::path& checkpoint,
                        std::optional<std::int64_t> iteration = std::nullopt);
/// The last report, which nobody answers.
std::string result_line(const Value& metrics, const std::filesystem::path& checkpoint);
std::string checkpoint_line(const std::filesystem::path& checkpoint);
std::string failure_line(std::string_view error);

/// A line of the study: an answer, or (without one) that the trial shall end.
struct StudyLine {
  std::optional<Answer> answer{};
};
StudyLine parse_study_line(std::string_view line);
std::string answer_line(Answer answer);
std::string stop_line();

/// The result on the last line of output: a JSON object, "loss=0.3 acc=0.9", or a number, which is
/// the value of `metric`.
std::optional<Value> parse_last_words(std::string_view output, std::string_view metric);
/// "loss=0.3 epoch=4 note=x" as a dictionary. Throws invalid_argument.
Value parse_assignments(const std::vector<std::string>& words);

}  // namespace kolo::tune
