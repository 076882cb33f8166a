// One target for libFuzzer, which scripts/fuzz names by KOLO_FUZZ_TARGET when it compiles this.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const kolo::fuzz::Target* const target = [] {
    const char* name = std::getenv("KOLO_FUZZ_TARGET");
    const auto* found = name == nullptr ? nullptr : kolo::fuzz::find_target(name);
    if (found == nullptr) {
      std::fputs("KOLO_FUZZ_TARGET names no target; use scripts/fuzz\n", stderr);
      std::exit(2);
    }
    return found;
  }();
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
