// Checks every collective, then times allreduce.
//
//   kolo run -np 2 build/release/bin/kolo_collectives_check
//
// Rank 0 prints one line for each operation and a table of sizes; the exit status is 1 when any
// rank got a wrong result.
#include <kolo/kolo.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "collectives_checks.h"

namespace {

using Clock = std::chrono::steady_clock;

double microseconds_of(kolo::Communicator& world, std::span<float> data, int operations) {
  auto start = Clock::now();
  for (int i = 0; i < operations; ++i) world.allreduce(data, kolo::ReduceOp::sum);
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / operations;
}

/// Median time of one allreduce (sum), in µs, over about a tenth of a second.
double median_time(kolo::Communicator& world, std::span<float> data) {
  std::fill(data.begin(), data.end(), 0.0F);  // sums of zeros stay zeros
  double once = microseconds_of(world, data, 3);
  // Every rank the same number of rounds, and of operations in each.
  int plan[] = {std::clamp(static_cast<int>(500'000 / once), 3, 9), 0};
  plan[1] = std::clamp(static_cast<int>(100'000 / plan[0] / once), 1, 1000);
  world.broadcast(std::span<int>(plan), 0);
  const auto [rounds, operations] = plan;
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    world.barrier();
    times.push_back(microseconds_of(world, data, operations));
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[rounds / 2];
}

void print_table(kolo::Communicator& world) {
  struct Size {
    const char* name;
    std::size_t bytes;
  };
  constexpr Size kSizes[] = {{"8 B", 8},           {"1 KiB", 1 << 10}, {"16 KiB", 1 << 14},
                             {"256 KiB", 1 << 18}, {"1 MiB", 1 << 20}, {"16 MiB", 1 << 24},
                             {"64 MiB", 1 << 26}};
  bool print = world.rank() == 0;
  if (print) {
    std::printf("\nallreduce, float32 sum, %d rank(s), median\n", world.size());
    std::printf("%10s %27s %27s\n", "", "memory of kolo's own", "memory from anywhere");
  }
  for (const Size& size : kSizes) {
    std::size_t count = size.bytes / sizeof(float);
    auto own = world.allocate<float>(count);
    std::vector<float> foreign(count);
    double own_time = median_time(world, own.span());
    double foreign_time = median_time(world, foreign);
    if (print) {
      auto bytes = static_cast<double>(size.bytes);
      std::printf("%10s %11.2f µs %7.2f GB/s %11.2f µs %7.2f GB/s\n", size.name, own_time,
                  bytes / own_time / 1e3, foreign_time, bytes / foreign_time / 1e3);
    }
  }
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    kolo::init();
    kolo::Communicator& world = kolo::world();
    bool print = world.rank() == 0;
    if (print)
      std::printf("kolo %s: %d rank(s), transport %s\n\n", KOLO_VERSION, world.size(),
                  world.transport().c_str());

    bool all_right = true;
    for (const collectives::Check& check : collectives::checks()) {
      bool mine = check.run(world);
      // Every rank hears of a failure on any rank.
      bool right = world.allreduce(mine ? 1 : 0, kolo::ReduceOp::min) == 1;
      all_right = all_right && right;
      if (print) std::printf("%-6s %-18s %s\n", right ? "ok" : "WRONG", check.name, check.summary);
    }
    if (all_right) print_table(world);
    kolo::shutdown();
    return all_right ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const kolo::Error& error) {
    std::fprintf(stderr, "collectives_check: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
