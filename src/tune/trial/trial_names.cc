#include "tune/trial/trial_names.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <set>

#include "base/errors.h"
#include "kolo/random.h"
#include "tune/trial/shown_config.h"

namespace kolo::tune {
namespace {

constexpr std::size_t kLongestName = 130;    // without the date
constexpr std::size_t kLongestOfUser = 255;  // as file systems have it

std::string short_text(const Value& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_number() && !value.is_integer()) return fmt::format("{:.5g}", value.as_number());
  return value.to_string();
}

/// Letters that are no trouble in a file name.
std::string harmless(std::string text) {
  for (char& c : text)
    if (std::strchr("/\\ \t\n\"'{}[]:*?<>|", c) != nullptr) c = '_';
  return text;
}

}  // namespace

std::string trial_id(const std::string& study, double created, std::int64_t number) {
  const auto seed = static_cast<std::uint64_t>(created * 1000);
  const std::uint64_t digits = Random(seed).stream(study).next() & 0xfffff;
  return fmt::format("{:05x}_{:05}", digits, number);
}

std::string experiment_tag(std::int64_t number, const Value& config, const search::Space& space) {
  std::string tag = std::to_string(number);
  char before = '_';
  const Value shown = shown_config(config);
  std::set<std::string> named;
  for (const auto& varied : space.varied_paths()) {
    const std::string path = shown_path(varied);
    const Value* value = path.empty() ? nullptr : shown.find_path(path);
    if (value == nullptr || !named.insert(path).second) continue;
    const auto slash = path.rfind('/');
    tag +=
        before + path.substr(slash == std::string::npos ? 0 : slash + 1) + "=" + short_text(*value);
    before = ',';
  }
  return tag;
}

std::string date_text(double time) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return fmt::format("{:%Y-%m-%d_%H-%M-%S}", local);
}

std::string trial_directory(const Options& options, const std::string& trainable,
                            const std::string& id, std::int64_t number, const Value& config,
                            const search::Space& space, double created) {
  if (options.trial_dirname_creator) {
    const std::string name = options.trial_dirname_creator(number, config);
    if (name.empty() || name == "." || name == ".." || name.size() > kLongestOfUser ||
        name.find('/') != std::string::npos)
      throw_error(ErrorCode::invalid_argument,
                  "trial_dirname_creator returned '{}', which cannot be the name of a directory",
                  name);
    return name;
  }
  std::string name = harmless(trainable + "_" + id + "_" + experiment_tag(number, config, space));
  // A cut inside a letter of several bytes would make a name that is no text.
  std::size_t end = std::min(name.size(), kLongestName);
  while (end > 0 && end < name.size() && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80)
    --end;
  return name.substr(0, end) + "_" + date_text(created);
}

}  // namespace kolo::tune
