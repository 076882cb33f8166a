// Contenders measured in turn.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "driver/contender.h"
#include "driver/report.h"

namespace bench {

std::vector<std::string> operator+(std::vector<std::string> front,
                                   const std::vector<std::string>& back);

/// Open MPI refuses root without.
extern const std::vector<std::string> kOpenMpiEnvironment;

/// Starts a contender, or says why it takes no part.
std::unique_ptr<Contender> try_start(Reception& reception, const ContenderSpec& spec);

/// One column of a table: a contender in one of its modes.
struct Entry {
  std::string column;
  std::unique_ptr<Contender>* contender;
  std::string mode;
};

/// Measures each entry once. One that fails is reported and takes no part any more.
void measure_round(Report& report, std::vector<Entry>& entries, std::size_t bytes,
                   const Effort& effort);

/// Rounds as long as there is time for one more, at least one, at most `rounds`.
class RoundClock {
 public:
  RoundClock(double seconds, int rounds) : seconds_(seconds), rounds_(rounds) {}
  bool another();
  [[nodiscard]] int round() const noexcept { return round_; }  ///< the current one, from 1

 private:
  double seconds_;
  int rounds_, round_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), last_ = begin_;
};

}  // namespace bench
