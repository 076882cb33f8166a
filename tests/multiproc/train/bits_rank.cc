// One rank of a run with virtual ranks, under any launcher: bits_rank STEPS. Rank 0 prints the
// weights of each step as hashes.
#include <cstdio>
#include <cstdlib>

#include "kolo/context.h"
#include "multiproc/train/bits.h"

int main(int argc, char** argv) {
  try {
    kolo::init();
    const std::string lines =
        kolo::test::bits_of_each_step(kolo::engine(), argc > 1 ? std::atoi(argv[1]) : 10);
    if (kolo::rank() == 0) std::printf("%s", lines.c_str());
    kolo::engine().barrier();
    kolo::shutdown();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bits_rank: %s\n", error.what());
    return 1;
  }
}
