#include "base/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/log_file.h"
#include "base/registry.h"
#include "base/utf8.h"

namespace kolo::log {
namespace {

constexpr std::string_view kNames[] = {"trace", "debug", "info", "warning", "error", "fatal"};
constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::trace, spdlog::level::debug,
                                                 spdlog::level::info,  spdlog::level::warn,
                                                 spdlog::level::err,   spdlog::level::critical};

/// Created at first use, never destroyed: threads may log while the process ends.
struct Logger {
  spdlog::logger* sink;
  std::atomic<int> level{static_cast<int>(Level::warning)};
  std::string_view time = "%Y-%m-%d %H:%M:%S.%e ";
  std::atomic<bool> has_file{false};
  std::atomic<std::shared_ptr<spdlog::logger>> file;

  Logger() : sink(new spdlog::logger("kolo", std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
    sink->set_level(spdlog::level::trace);
    sink->flush_on(spdlog::level::trace);
    if (setting_flag("LOG_HIDE_TIME").value_or(false)) time = "";
    set_rank(-1);
    if (auto name = setting("LOG_LEVEL")) level = static_cast<int>(parse_level(*name));
  }

  void set_rank(int rank) {
    std::string prefix = rank < 0 ? "" : fmt::format("[{}] ", rank);
    sink->set_pattern(fmt::format("{}{}%l: %v", time, prefix));
  }
};

Logger& logger() {
  static auto* instance = new Logger;
  return *instance;
}

}  // namespace

Level parse_level(std::string_view name) {
  for (int i = 0; i < static_cast<int>(std::size(kNames)); ++i)
    if (name == kNames[i]) return static_cast<Level>(i);
  throw_unknown_name("log level", name, {std::begin(kNames), std::end(kNames)},
                     ErrorCode::invalid_argument);
}

void set_level(Level level) noexcept { logger().level = static_cast<int>(level); }
bool enabled(Level level) noexcept {
  return static_cast<int>(level) >= logger().level || (level >= Level::info && logger().has_file);
}
void set_rank(int rank) { logger().set_rank(rank); }

void write(Level level, std::string_view message) {
  const auto severity = kLevels[static_cast<int>(level)];
  // Messages quote what programs say.
  const std::string shown = printable_lines(message);
  const spdlog::string_view_t text(shown.data(), shown.size());
  if (static_cast<int>(level) >= logger().level) logger().sink->log(severity, text);
  if (level < Level::info || !logger().has_file) return;
  if (const auto file = logger().file.load()) file->log(severity, text);
}

File::File(const std::filesystem::path& path) {
  std::shared_ptr<spdlog::logger> file;
  // What programs say at their end is in it, which is for the user alone.
  const Fd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kPrivateFile));
  try {
    file = std::make_shared<spdlog::logger>(
        "file", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string()));
  } catch (const spdlog::spdlog_ex& error) {
    throw_error(ErrorCode::io, "cannot write the log {}: {}", path.string(), error.what());
  }
  file->flush_on(spdlog::level::trace);
  file->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
  file->set_error_handler([](const std::string&) {});  // a full disk ends nothing
  logger().file = std::move(file);
  logger().has_file = true;
}

void File::add(std::string_view message) const {
  if (const auto file = logger().file.load())
    file->error(spdlog::string_view_t(message.data(), message.size()));
}

File::~File() {
  logger().has_file = false;
  logger().file = std::shared_ptr<spdlog::logger>();
}

}  // namespace kolo::log
