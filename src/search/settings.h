// Reading the settings of a sampler or scheduler, with errors that say which exist.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/search/sampler.h"

namespace kolo::search {

/// SettingsReader settings("tpe", options);
/// gamma_ = settings.number("gamma", 0.1, 0, 1); …
/// settings.done();   // anything not read is unknown
class SettingsReader {
 public:
  SettingsReader(std::string_view sampler, const SamplerOptions& options);
  /// `owner` as errors shall name it: "scheduler asha".
  SettingsReader(std::string owner, const std::map<std::string, Value>& settings);

  /// Each throws invalid_argument naming owner, setting and rule. Bounds are inclusive.
  double number(const char* name, double otherwise,
                double low = -std::numeric_limits<double>::infinity(),
                double high = std::numeric_limits<double>::infinity());
  std::int64_t integer(const char* name, std::int64_t otherwise, std::int64_t low = INT64_MIN,
                       std::int64_t high = INT64_MAX);
  bool truth(const char* name, bool otherwise);
  std::string text(const char* name, std::string otherwise);
  /// One of the given names; returns its place.
  std::size_t one_of(const char* name, std::vector<std::string_view> names, std::size_t otherwise);
  /// Marks the setting as known; null pointer if it is not set.
  const Value* raw(const char* name);

  /// Throws invalid_argument for a setting that nobody asked for, listing those that exist.
  void done() const;

  /// Throws invalid_argument for a setting whose value breaks a rule.
  [[noreturn]] void refuse(const char* name, const std::string& rule) const;

 private:
  std::string owner_;
  const std::map<std::string, Value>& settings_;
  std::vector<std::string_view> known_;
};

}  // namespace kolo::search
