#include "events/event_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/errors.h"
#include "base/files.h"
#include "base/frames.h"
#include "event.pb.h"
#include "events/crc32c.h"

namespace kolo::events {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHead = 12, kTail = 4;  // of a record, around its message
constexpr const char* kHyperparameters = "hparams";

std::uint32_t checksum_at(std::string_view bytes, std::size_t at) {
  return ByteReader(bytes.substr(at, 4)).u32();
}

/// Newer writers put a scalar into a tensor.
std::optional<double> scalar_of(const Tensor& tensor) {
  constexpr int kFloat = 1, kDouble = 2;
  if (tensor.float_val_size() == 1) return tensor.float_val(0);
  if (tensor.double_val_size() == 1) return tensor.double_val(0);
  const std::string& content = tensor.tensor_content();
  if (tensor.dtype() == kFloat && content.size() == sizeof(float)) {
    float value = 0;
    std::memcpy(&value, content.data(), sizeof value);
    return value;
  }
  if (tensor.dtype() == kDouble && content.size() == sizeof(double)) {
    double value = 0;
    std::memcpy(&value, content.data(), sizeof value);
    return value;
  }
  return std::nullopt;
}

HParam hparam_of(const std::string& name, const google::protobuf::Value& value) {
  using google::protobuf::Value;
  switch (value.kind_case()) {
    case Value::kBoolValue: return {name, value.bool_value()};
    case Value::kNumberValue: return {name, value.number_value()};
    default: return {name, value.string_value()};
  }
}

void take_session(const std::string& content, RunEvents& run) {
  HParamsPluginData data;
  if (!data.ParseFromString(content)) return;
  if (data.has_session_start_info()) {
    run.hparams.clear();
    for (const auto& [name, value] : data.session_start_info().hparams())
      run.hparams.push_back(hparam_of(name, value));
    std::sort(run.hparams.begin(), run.hparams.end(),
              [](const HParam& left, const HParam& right) { return left.first < right.first; });
  }
  if (data.has_session_end_info()) run.success = data.session_end_info().status() != STATUS_FAILURE;
}

void take(const Event& event, RunEvents& run) {
  if (event.wall_time() > 0) {
    run.began = run.began == 0 ? event.wall_time() : std::min(run.began, event.wall_time());
    run.ended = std::max(run.ended, event.wall_time());
  }
  for (const auto& value : event.summary().value()) {
    const auto& plugin = value.metadata().plugin_data();
    if (plugin.plugin_name() == kHyperparameters) {
      take_session(plugin.content(), run);
      continue;
    }
    std::optional<double> scalar;
    if (value.has_simple_value()) scalar = value.simple_value();
    if (value.has_tensor()) scalar = scalar_of(value.tensor());
    if (scalar) run.scalars[event.step()][value.tag()] = *scalar;
  }
}

}  // namespace

bool is_event_file(const fs::path& path) {
  return path.filename().string().find("tfevents") != std::string::npos;
}

void read_events(const fs::path& path, RunEvents& run) {
  parse_events(read_file(path), path.string(), run);
}

void parse_events(std::string_view all, const std::string& name, RunEvents& run) {
  const auto refuse = [&name](const char* what) {
    throw_error(ErrorCode::corruption, "{}: {}; it is no event file of TensorBoard, or was damaged",
                name, what);
  };
  for (std::size_t at = 0; at + kHead <= all.size();) {
    const std::uint64_t length = ByteReader(all.substr(at, 8)).u64();
    if (masked(crc32c(all.substr(at, 8))) != checksum_at(all, at + 8))
      refuse("the checksum of a length is wrong");
    if (length > all.size() - at - kHead || length + kTail > all.size() - at - kHead) return;
    const std::string_view message = all.substr(at + kHead, length);
    if (masked(crc32c(message)) != checksum_at(all, at + kHead + length))
      refuse("the checksum of a record is wrong");
    Event event;
    if (!event.ParseFromArray(message.data(), static_cast<int>(message.size())))
      refuse("a record is not an event");
    take(event, run);
    at += kHead + length + kTail;
  }
}

}  // namespace kolo::events
