#include "driver/round.h"

#include <cstdio>

namespace bench {

const std::vector<std::string> kOpenMpiEnvironment = {"OMPI_ALLOW_RUN_AS_ROOT=1",
                                                      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};

std::vector<std::string> operator+(std::vector<std::string> front,
                                   const std::vector<std::string>& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

std::unique_ptr<Contender> try_start(Reception& reception, const ContenderSpec& spec) {
  try {
    return std::make_unique<Contender>(reception, spec);
  } catch (const std::exception& error) {
    std::printf("MISSING %s: %s\n", spec.name.c_str(), error.what());
    return nullptr;
  }
}

void measure_round(Report& report, std::vector<Entry>& entries, std::size_t bytes,
                   const Effort& effort) {
  for (auto& entry : entries) {
    if (*entry.contender == nullptr) continue;
    try {
      report.add(entry.column, bytes, (*entry.contender)->measure(entry.mode, bytes, effort));
    } catch (const std::exception& error) {
      std::printf("FAILED %s at %s: %s\n", entry.column.c_str(), size_name(bytes).c_str(),
                  error.what());
      entry.contender->reset();
    }
  }
}

}  // namespace bench
