// What this process has of memory and descriptors, for tests that it does not grow with use.
#pragma once

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "base/files.h"

namespace kolo::test {

struct Footprint {
  long bytes = 0;  ///< resident
  long descriptors = 0;

  static Footprint now() {
    ::malloc_trim(0);  // what was freed is given back
    Footprint footprint;
    long total = 0, pages = 0;
    std::sscanf(read_file("/proc/self/statm").c_str(), "%ld %ld", &total, &pages);
    footprint.bytes = pages * ::sysconf(_SC_PAGESIZE);
    for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd"))
      ++footprint.descriptors;
    return footprint;
  }

  /// Says it for people who run the long form, and for failures.
  [[nodiscard]] std::string against(const Footprint& before, long count, const char* what) const {
    return fmt::format("{} {}: {:.1f} MB and {} descriptors, then {:.1f} MB and {}", count, what,
                       static_cast<double>(before.bytes) / 1e6, before.descriptors,
                       static_cast<double>(bytes) / 1e6, descriptors);
  }
};

}  // namespace kolo::test
