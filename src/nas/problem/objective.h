// Objective strings, as DeepHyper has them: [-][val_]METRIC[__min|__max|__last].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kolo/nas/history.h"

namespace kolo::nas {

struct Objective {
  enum class Take { last, min, max };
  std::string metric{};  ///< "val_r2"
  bool negated = false;
  Take take = Take::last;
  /// "__last" was written: validation is needed in the last epoch only.
  bool last_epoch_only = false;

  /// Throws invalid_argument.
  static Objective parse(std::string_view text);

  /// Throws not_found, suggesting a near one, if it is none of the metrics that a training has.
  void check(const std::vector<std::string>& metrics) const;

  /// What is to be maximised. Not a number where the history has one or is empty. Throws not_found,
  /// listing the metrics there are.
  [[nodiscard]] double value_in(const History& history) const;
};

}  // namespace kolo::nas
