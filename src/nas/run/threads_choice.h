// The number of threads of an evaluation, where the user has not set it.
#pragma once

namespace kolo::nas {

/// One, unless OMP_NUM_THREADS is set or the program has chosen a number (kolo/torch/threads.h):
/// the networks of a search are so small that threads wait for each other longer than they compute,
/// and where other processes want the cores, too, many times longer. Takes effect once in a
/// process.
void choose_threads();

}  // namespace kolo::nas
