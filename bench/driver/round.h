// Contenders measured in turn.
#pragma once

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

}  // namespace bench
