// A study on 64 nodes in simulated time: how much sooner it reaches its target when ranks move to
// trials that go on. The study, its scheduler and its sharing of ranks are the real ones.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/files.h"
#include "support/ratios.h"
#include "unit/tune/moving_workers.h"

int main() {
  const kolo::TempDir scratch("kolo-bench");
  kolo::test::MovingWorkers trace(scratch.path());
  std::vector<double> shares;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const double fixed = trace.time_to_target("fixed" + std::to_string(seed), false, seed);
    const double moving = trace.time_to_target("moving" + std::to_string(seed), true, seed);
    shares.push_back(moving / fixed);
    std::printf("64 nodes, seed %d: the target after %.1f h, with ranks that move %.1f h\n",
                static_cast<int>(seed), fixed / 3600, moving / 3600);
  }
  std::sort(shares.begin(), shares.end());
  bench::Ratios ratios;
  ratios.print("elastic_time_to_target", shares[shares.size() / 2], "<=", 0.85);
  return 0;
}
