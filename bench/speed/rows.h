// Rows of `scripts/bench search` that have files of their own.
#pragma once

#include <string>

namespace bench {

struct SpeedOptions {
  bool quick = false;
  std::string optuna;  ///< the command of search_optuna_peer.py; empty = without it
};

// Each gives NaN, after a line MISSING …, when what it measures is not there.
double asha_reports_per_s(const SpeedOptions& options);
double tpe_200x40_vs_optuna(const SpeedOptions& options);
double tpe_1000x40_s(const SpeedOptions& options);
double tpe_ask_growth(const SpeedOptions& options);

}  // namespace bench
