// Settings of a space: a dictionary whose names are known.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kolo/nas/search_space.h"

namespace kolo::nas {

class SpaceSettings {
 public:
  /// `settings`: a dictionary or nothing. Throws invalid_argument for unknown names. "regression"
  /// is known everywhere and changes nothing here: outputs are without activation either way.
  SpaceSettings(std::string_view space, const Value& settings, std::vector<std::string_view> known);

  /// A whole number. Throws invalid_argument outside of [least, most].
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t fallback,
                                     std::int64_t least, std::int64_t most) const;
  /// A number from 0, below 1.
  [[nodiscard]] double fraction(std::string_view name, double fallback) const;
  [[nodiscard]] std::vector<double> fractions(std::string_view name,
                                              std::vector<double> fallback) const;
  [[nodiscard]] std::vector<std::int64_t> counts(std::string_view name,
                                                 std::vector<std::int64_t> fallback) const;
  [[nodiscard]] bool flag(std::string_view name, bool fallback) const;

 private:
  [[nodiscard]] const Value* find(std::string_view name) const;
  [[noreturn]] void refuse(std::string_view name, const Value& value,
                           std::string_view needed) const;
  std::string_view space_;
  Value::Dict values_;
};

/// One node that carries all inputs: the input itself when there is one, else all of them,
/// flattened and concatenated.
NodeId merged_inputs(KSearchSpace& space);

}  // namespace kolo::nas
