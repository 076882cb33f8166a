#include "launcher_logs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/log.h"
#include "tune/trial/trial_names.h"

namespace kolo::app {
namespace fs = std::filesystem;
namespace {

/// So many are kept, and all that were written to in the last day.
constexpr std::size_t kKeptLogs = 100;
constexpr std::chrono::hours kFresh{24};

void remove_old_logs(const fs::path& folder) {
  const auto logs = launcher_logs(folder);
  const auto fresh = fs::file_time_type::clock::now() - kFresh;
  for (std::size_t i = 0; i + kKeptLogs < logs.size(); ++i) {
    std::error_code error;
    const auto written = fs::last_write_time(logs[i], error);
    if (error || written >= fresh) continue;
    fs::remove(logs[i], error);
  }
}

}  // namespace

std::vector<fs::path> launcher_logs(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "log", error)) {
    std::error_code gone;
    const auto written = entry.last_write_time(gone);
    if (!gone && entry.is_regular_file(gone)) found.emplace_back(written, entry.path());
  }
  std::sort(found.begin(), found.end());
  std::vector<fs::path> logs;
  for (auto& [written, path] : found) logs.push_back(std::move(path));
  return logs;
}

std::unique_ptr<log::File> begin_launcher_log(const fs::path& folder) {
  const auto name =
      fmt::format("launcher_{}_{}.log", tune::date_text(system_clock().date()), ::getpid());
  try {
    fs::create_directories(folder / "log");
    remove_old_logs(folder);
    return std::make_unique<log::File>(folder / "log" / name);
  } catch (const std::exception& error) {
    log::warning("the launcher keeps no log: {}", error.what());
    return nullptr;
  }
}

}  // namespace kolo::app
