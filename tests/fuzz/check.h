// What targets say about what they run.
#pragma once

#include <cstdlib>

#include "kolo/error.h"

namespace kolo::fuzz {

/// What must hold for every input.
inline void require(bool holds) {
  if (!holds) std::abort();
}

/// Refusals are answers. Every call gets its turn, whatever the ones before said.
template <class... Calls>
void each(Calls&&... calls) {
  const auto attempt = [](auto&& call) {
    try {
      call();
    } catch (const Error&) {
    }
  };
  (attempt(calls), ...);
}

}  // namespace kolo::fuzz
