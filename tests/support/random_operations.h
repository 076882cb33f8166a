// A long random sequence of operations that every rank can compute for itself.
#pragma once

#include <cstdint>

#include "kolo/communicator.h"

namespace kolo::test {

/// Runs `count` operations drawn from `seed` on `world` and on some of its subsets; kind, type,
/// size, root and group are random, the same on all ranks. Results are checked where the answer is
/// simple. Returns a hash over all that every rank must have received alike; throws
/// std::runtime_error that names the operation when a result is wrong.
std::uint64_t run_random_operations(Communicator& world, std::uint64_t seed, int count);

}  // namespace kolo::test
