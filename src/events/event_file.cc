#include "events/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <exception>

#include "base/errors.h"
#include "base/files.h"
#include "base/frames.h"
#include "base/host.h"
#include "event.pb.h"
#include "events/crc32c.h"

namespace kolo::events {
namespace {

constexpr std::size_t kFlushBytes = 64U << 10;
/// So much waits for a file that cannot be written; what comes then is not recorded.
constexpr std::size_t kMostPending = 1U << 20;
constexpr const char* kHParamsPlugin = "hparams";

/// The plug-in's data travel as metadata of values that have no value of their own.
void add_plugin_value(Summary& summary, const std::string& tag, const HParamsPluginData& data) {
  auto* value = summary.add_value();
  value->set_tag(tag);
  auto* plugin = value->mutable_metadata()->mutable_plugin_data();
  plugin->set_plugin_name(kHParamsPlugin);
  plugin->set_content(data.SerializeAsString());
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& directory, double wall_time) {
  // Several files may be opened in one second; a serial number keeps their names apart.
  static std::atomic<unsigned> serial{0};
  path_ = directory / fmt::format("events.out.tfevents.{:010}.{}.{}.{}",
                                  static_cast<std::int64_t>(wall_time), host_name(), ::getpid(),
                                  serial++);
  file_ = open_plain_file(path_, O_WRONLY | O_CREAT | O_APPEND, 0644);
  Event event;
  event.set_wall_time(wall_time);
  event.set_file_version("brain.Event:2");
  record(event.SerializeAsString());
}

EventFile::~EventFile() {
  try {
    flush();
  } catch (const std::exception&) {
    // Nobody is left to be told; whoever needs to know calls flush().
  }
}

void EventFile::scalar(std::string_view tag, double value, std::int64_t step, double wall_time) {
  const std::pair<std::string, double> one{tag, value};
  scalars({&one, 1}, step, wall_time);
}

void EventFile::scalars(std::span<const std::pair<std::string, double>> values, std::int64_t step,
                        double wall_time) {
  Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  for (const auto& [tag, value] : values) {
    auto* entry = event.mutable_summary()->add_value();
    entry->set_tag(tag);
    entry->set_simple_value(static_cast<float>(value));
  }
  record(event.SerializeAsString());
}

void EventFile::hparams(std::span<const HParam> values, std::span<const std::string> metrics,
                        double wall_time) {
  HParamsPluginData experiment, start;
  start.mutable_session_start_info()->set_start_time_secs(wall_time);
  auto& given = *start.mutable_session_start_info()->mutable_hparams();
  for (const auto& [name, value] : values) {
    auto* info = experiment.mutable_experiment()->add_hparam_infos();
    info->set_name(name);
    if (const bool* truth = std::get_if<bool>(&value)) {
      info->set_type(DATA_TYPE_BOOL);
      given[name].set_bool_value(*truth);
    } else if (const double* number = std::get_if<double>(&value)) {
      info->set_type(DATA_TYPE_FLOAT64);
      given[name].set_number_value(*number);
    } else {
      info->set_type(DATA_TYPE_STRING);
      given[name].set_string_value(std::get<std::string>(value));
    }
  }
  for (const std::string& metric : metrics)
    experiment.mutable_experiment()->add_metric_infos()->mutable_name()->set_tag(metric);

  Event event;
  event.set_wall_time(wall_time);
  add_plugin_value(*event.mutable_summary(), "_hparams_/experiment", experiment);
  add_plugin_value(*event.mutable_summary(), "_hparams_/session_start_info", start);
  record(event.SerializeAsString());
}

void EventFile::end_of_session(bool success, double wall_time) {
  HParamsPluginData end;
  end.mutable_session_end_info()->set_status(success ? STATUS_SUCCESS : STATUS_FAILURE);
  end.mutable_session_end_info()->set_end_time_secs(wall_time);
  Event event;
  event.set_wall_time(wall_time);
  add_plugin_value(*event.mutable_summary(), "_hparams_/session_end_info", end);
  record(event.SerializeAsString());
}

void EventFile::record(std::string_view message) {
  if (pending_.size() >= kMostPending) flush();
  ByteWriter length, check;
  length.u64(message.size());
  check.u32(masked(crc32c(message)));
  pending_.append(length.bytes());
  pending_.append(ByteWriter().u32(masked(crc32c(length.bytes()))).bytes());
  pending_.append(message);
  pending_.append(check.bytes());
  if (pending_.size() >= kFlushBytes) flush();
}

void EventFile::flush() { write_pending(file_.get(), pending_, path_.string()); }

}  // namespace kolo::events
