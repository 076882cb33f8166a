#include "tune/executor/trial_environment.h"

#include <fmt/format.h>

#include <cctype>
#include <sstream>

#include "base/env.h"
#include "store/database.h"
#include "tune/protocol/trial_protocol.h"
#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace {

/// The devices of a grant are places in what this process itself may see.
std::string visible_devices(const std::vector<int>& places) {
  std::vector<std::string> visible;
  std::istringstream own(environment("CUDA_VISIBLE_DEVICES").value_or(""));
  for (std::string device; std::getline(own, device, ',');) visible.push_back(device);
  std::string devices;
  for (const int device : places) {
    const auto place = static_cast<std::size_t>(device);
    devices += (devices.empty() ? "" : ",") +
               (place < visible.size() ? visible[place] : std::to_string(device));
  }
  return devices;
}

}  // namespace

std::vector<std::string> parameter_variables(const Value& config) {
  std::vector<std::string> entries;
  for (const auto& [path, value] : flatten(config)) {
    std::string name = "KOLO_PARAM_" + path;
    for (char& c : name)
      c = std::isalnum(static_cast<unsigned char>(c)) != 0
              ? static_cast<char>(std::toupper(static_cast<unsigned char>(c)))
              : '_';
    entries.push_back(name + "=" + (value.is_string() ? value.as_string() : value.to_string()));
  }
  return entries;
}

std::vector<std::string> trial_environment(const StartOrder& order,
                                           const std::filesystem::path& reports) {
  auto entries = parameter_variables(order.config);
  const auto set = [&entries](const char* name, const std::string& value) {
    entries.push_back(fmt::format("{}={}", name, value));
  };
  set("KOLO_TRIAL_PROTOCOL", std::to_string(kTrialProtocol));
  set(kTrialId, order.trial_id);
  set(kTrialName, order.trial_name);
  set(kTrialDir, order.directory.string());
  set(kTrialIteration, std::to_string(order.iteration));
  set(kTrialCheckpoint, order.checkpoint ? order.checkpoint->string() : "");
  set(kTrialConfig, (order.directory / "params.json").string());
  set(kTrialReports, reports.string());  // "" hides the file of a trial around this one
  // A trial has no use for the password of the study's database.
  if (const auto storage = environment("KOLO_STORAGE"))
    if (const auto shown = store::without_password(*storage); shown != *storage)
      set("KOLO_STORAGE", shown);
  return entries;
}

std::optional<std::string> device_variable(const StartOrder& order) {
  if (order.grant.devices.empty()) return std::nullopt;
  return "CUDA_VISIBLE_DEVICES=" + visible_devices(order.grant.devices);
}

}  // namespace kolo::tune
