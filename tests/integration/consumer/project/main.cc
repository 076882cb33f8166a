// A program outside kolo's tree: sums its ranks, and says so from rank 0.
// Usage: consumer [expected number of ranks]
#include <kolo/kolo.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  try {
    kolo::init();
    int expected = argc > 1 ? std::atoi(argv[1]) : 1;
    int sum = kolo::world().allreduce(kolo::rank() + 1, kolo::ReduceOp::sum);
    bool right = kolo::size() == expected && sum == expected * (expected + 1) / 2;
    if (kolo::rank() == 0)
      std::printf("kolo %s: %d ranks, sum %d, %s\n", KOLO_VERSION, kolo::size(), sum,
                  right ? "right" : "WRONG");
    kolo::shutdown();
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const kolo::Error& error) {
    std::fprintf(stderr, "consumer: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
