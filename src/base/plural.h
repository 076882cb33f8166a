// Numbers of things in messages.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace kolo {

/// "1 job", "2 jobs", "3 launches". For words with a regular plural.
inline std::string counted(std::int64_t number, std::string_view thing) {
  const bool hisses = thing.ends_with("ch") || thing.ends_with('s') || thing.ends_with('x');
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : hisses ? "es" : "s");
}

}  // namespace kolo
