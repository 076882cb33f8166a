// Maps of a cluster file, with the keys that they may have.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "base/json.h"
#include "base/registry.h"
#include "cluster/cluster_file.h"

namespace kolo::cluster {

using Keys = std::vector<std::string_view>;

/// Of workers, and of slots and GPUs of a host: more is a mistake, and sums of it might overflow.
inline constexpr int kMostAtOnce = 1'000'000;

/// The JSON must live as long as this.
class Section {
 public:
  Section(const Json& json, std::string where, const Keys& known)
      : json_(json), where_(std::move(where)) {
    if (!json_.is_object())
      throw_error(ErrorCode::invalid_argument, "{}: must be a map of settings", where_);
    for (const auto& [key, value] : json_.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        throw_error(ErrorCode::invalid_argument, "{}: {}", where_, unknown_name("key", key, known));
  }

  [[nodiscard]] bool has(const char* key) const {
    return json_.contains(key) && !json_.at(key).is_null();
  }
  [[nodiscard]] const Json& at(const char* key) const { return json_.at(key); }
  template <class T>
  void take(const char* key, T& into) const {
    if (has(key)) into = json_field<T>(json_, key, where_);
  }
  template <class T>
  [[nodiscard]] T need(const char* key) const {
    return json_field<T>(json_, key, where_);
  }
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

 private:
  const Json& json_;
  std::string where_;
};

/// Where the hosts come from, and how many of them.
void take_provider(const Section& all, ClusterFile& file);

}  // namespace kolo::cluster
