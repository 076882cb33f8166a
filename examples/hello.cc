// Each rank contributes its number plus one; everybody gets the average.
//
//   kolo run -np 4 build/release/bin/kolo_hello     prints, from rank 0:  4 ranks, average 2.5
#include <kolo/kolo.h>

#include <cstdio>
#include <vector>

int main() {
  kolo::init();
  std::vector<float> gradient(1000, static_cast<float>(kolo::rank() + 1));
  kolo::world().allreduce(std::span(gradient));  // averages, in place
  if (kolo::rank() == 0) std::printf("%d ranks, average %g\n", kolo::size(), gradient[0]);
  kolo::shutdown();
}
