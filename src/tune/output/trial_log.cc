#include "tune/output/trial_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <unistd.h>

#include <ctime>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "base/registry.h"
#include "search/space/json_value.h"
#include "tune/output/result_loggers.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

using MakeLogger = std::unique_ptr<ResultLogger> (*)(const LoggedTrial&);

constexpr Entry<MakeLogger> kLoggers[] = {
    {"json", "result.json: a line for each result", make_json_logger},
    {"csv", "progress.csv: a row for each result", make_csv_logger},
    {"tensorboard", "events.out.tfevents.*: scalars and hyperparameters", make_tensorboard_logger},
};
constexpr Registry<MakeLogger> kTable{"logger", kLoggers};

void remove_results(const fs::path& directory) {
  std::error_code none;
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(directory, none)) {
    const std::string name = entry.path().filename().string();
    if (name == "result.json" || name == "progress.csv" || name.starts_with("events.out.tfevents."))
      old.push_back(entry.path());
  }
  for (const auto& path : old) fs::remove(path, none);
}

bool holds(const fs::path& path, const std::string& text) {
  std::error_code none;
  if (fs::file_size(path, none) != text.size() || none) return false;
  try {
    return read_plain_file(path) == text;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void require_trial_directory(const fs::path& directory) {
  std::error_code none;
  if (fs::symlink_status(directory, none).type() != fs::file_type::directory)
    throw_error(ErrorCode::failed_precondition,
                "{} is no directory but a file, a link or the like; remove what has this name",
                directory.string());
}

Fd open_trial_file(const fs::path& path, mode_t mode) {
  require_trial_directory(path.parent_path());
  return open_plain_file(path, O_WRONLY | O_CREAT | O_APPEND, mode);
}

std::vector<LoggerInfo> loggers() {
  std::vector<LoggerInfo> all;
  for (const auto& entry : kTable.entries()) all.push_back({entry.name, entry.summary});
  return all;
}

void require_loggers(const std::vector<std::string>& names) {
  for (const auto& name : names) static_cast<void>(kTable.at(name));
}

void replace_trial_file(const fs::path& path, std::string_view content) {
  require_trial_directory(path.parent_path());
  const fs::path next = path.parent_path() / ("." + path.filename().string());
  ::unlink(next.c_str());  // of a crash, or what an earlier run of the trial has put there
  {
    const Fd file = open_plain_file(next, O_WRONLY | O_CREAT | O_EXCL, 0644);
    write_all(file.get(), content, next.string());
  }
  if (::rename(next.c_str(), path.c_str()) != 0) throw_errno("cannot write {}", path.string());
}

void write_params(const fs::path& directory, const search::Value& config) {
  const std::string params = json_text(search::json_from_value(config), 2) + "\n";
  require_trial_directory(directory);
  const fs::path path = directory / "params.json";
  if (!holds(path, params)) replace_trial_file(path, params);
}

TrialLog::TrialLog(LoggedTrial trial, const std::vector<std::string>& names, bool anew)
    : directory_(trial.directory) {
  fs::create_directories(directory_);
  require_trial_directory(directory_);
  if (anew) remove_results(directory_);
  write_params(directory_, trial.config);
  for (const auto& name : names) loggers_.push_back(kTable.at(name).make(trial));
}

void TrialLog::result(const search::Value& result) {
  for (auto& logger : loggers_) logger->result(result);
}

void TrialLog::failure(std::int64_t count, const std::string& error, double time) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  // It repeats what the program has printed, which is nobody else's business either.
  const Fd file = open_trial_file(directory_ / "error.txt", kPrivateFile);
  write_all(
      file.get(),
      fmt::format("Failure # {} (occurred at {:%Y-%m-%d_%H-%M-%S})\n{}\n", count, local, error),
      "error.txt");
}

void TrialLog::flush() {
  for (auto& logger : loggers_) logger->flush();
}

void TrialLog::release() {
  flush();
  for (auto& logger : loggers_) logger->release();
}

void TrialLog::end(bool success) {
  for (auto& logger : loggers_) logger->end(success);
  flush();
}

}  // namespace kolo::tune
