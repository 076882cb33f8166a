// Maps of a cluster file, with the keys that they may have.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/errors.h"
#include "base/json.h"
#include "base/registry.h"
#include "cluster/cluster_file.h"

namespace kolo::cluster {

using Keys = std::vector<std::string_view>;

/// Of workers, and of slots and GPUs of a host: more is a mistake, and sums of it might overflow.
inline constexpr int kMostAtOnce = 1'000'000;

/// What a value of this type looks like in the file, for who wrote something else.
template <class T>
constexpr std::string_view kValueOf = "a number";
template <>
inline constexpr std::string_view kValueOf<std::string> =
    "text, in quotes if it looks like a number";
template <>
inline constexpr std::string_view kValueOf<std::vector<std::string>> = "a list of texts";
template <>
inline constexpr std::string_view kValueOf<std::map<std::string, std::string>> =
    "a map of paths on the hosts to paths here";

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
    if (has(key)) into = need<T>(key);
  }
  template <class T>
  [[nodiscard]] T need(const char* key) const {
    if (has(key) && !can_be<T>(json_.at(key)))
      throw_error(ErrorCode::invalid_argument, "{}: '{}' must be {}", where_, key, kValueOf<T>);
    return json_field<T>(json_, key, where_);
  }
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

 private:
  template <class T>
  static bool can_be(const Json& value) {
    const auto is_text = [](const Json& one) { return one.is_string(); };
    if constexpr (std::is_arithmetic_v<T>) return value.is_number();
    if constexpr (std::is_same_v<T, std::string>) return is_text(value);
    const bool is_right =
        std::is_same_v<T, std::vector<std::string>> ? value.is_array() : value.is_object();
    return is_right && std::all_of(value.begin(), value.end(), is_text);
  }

  const Json& json_;
  std::string where_;
};

/// Where the hosts come from, and how many of them.
void take_provider(const Section& all, ClusterFile& file);

}  // namespace kolo::cluster
