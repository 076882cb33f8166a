// A training run with virtual ranks that says what the weights were after each step.
#pragma once

#include <string>
#include <vector>

#include "kolo/engine.h"

namespace kolo::test {

inline constexpr int kBitsVirtualRanks = 8;

/// A net with dropout, batch normalisation, and a branch that only some micro-batches take, trained
/// by this rank together with the others. One line for each step, with a hash of all parameters,
/// buffers and the loss.
std::string bits_of_each_step(Engine& engine, int steps);

/// The number of the first line that differs, and both; "" if none does.
std::string first_difference(const std::string& a, const std::string& b);

}  // namespace kolo::test
