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

bool RoundClock::another() {
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double> with_one_more = now - begin_ + (now - last_);
  last_ = now;
  if (round_ == rounds_ || (round_ > 0 && with_one_more.count() > seconds_)) return false;
  ++round_;
  return true;
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
