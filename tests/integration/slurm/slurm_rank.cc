// One rank of slurm_test.sh: some operations, and one line that says how it went.
//
//   slurm_rank [--die RANK]    that rank kills itself; the others say whom they have lost
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kolo/kolo.h"

int main(int argc, char** argv) try {
  kolo::init();
  kolo::Communicator& world = kolo::world();
  const int n = world.size();
  std::vector<float> data(300'001, static_cast<float>(world.rank() + 1));
  world.allreduce(std::span(data), kolo::ReduceOp::sum);
  const auto sum = static_cast<float>(n * (n + 1) / 2);
  const bool is_right = data.front() == sum && data.back() == sum;
  if (argc == 3 && std::strcmp(argv[1], "--die") == 0) {
    if (world.rank() == std::atoi(argv[2])) std::raise(SIGKILL);
    try {
      for (;;) world.barrier();
    } catch (const kolo::Error& error) {
      std::printf("rank %d lost rank %d\n", world.rank(), error.rank().value_or(-1));
      std::fflush(stdout);
      return 1;
    }
  }
  std::printf("rank %d of %d over %s: %s\n", world.rank(), n, world.transport().c_str(),
              is_right ? "fine" : "wrong sum");
  kolo::shutdown();
  return is_right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "slurm_rank: %s\n", error.what());
  return 1;
}
