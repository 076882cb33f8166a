// An elastic program without a framework: ranks may be killed, leave and come while it runs, and
// the result is the same.
//
//   kolo run -np 3 --min-np 1 build/release/bin/kolo_elastic_sum --steps 200
//
// Kill one of the ranks (kill -9) while it runs: the others go on in the same processes.
#include <kolo/elastic.h>
#include <kolo/kolo.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

long option(int argc, char** argv, const char* name, long fallback) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], name) == 0) return std::strtol(argv[i + 1], nullptr, 10);
  return fallback;
}

}  // namespace

int main(int argc, char** argv) {
  const long steps = option(argc, argv, "--steps", 20);
  const auto pause = std::chrono::milliseconds(option(argc, argv, "--pause-ms", 0));

  std::int64_t step = 0;
  std::vector<double> weights(1000, 0.0);
  kolo::elastic::State state;
  state.add(step).add(weights);

  const auto ending = kolo::elastic::run(state, [&](kolo::elastic::State&) {
    std::printf("process %d is rank %d of %d from step %ld on\n", static_cast<int>(::getpid()),
                kolo::rank(), kolo::size(), static_cast<long>(step));
    std::fflush(stdout);
    while (step < steps) {
      std::this_thread::sleep_for(pause);
      std::vector<double> gradient(weights.size(), static_cast<double>(step));
      kolo::world().allreduce(std::span(gradient));  // averages, in place
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i] += gradient[i];
      ++step;
      state.commit();
    }
  });
  const char* verdict =
      weights.back() == static_cast<double>(step * (step - 1)) / 2 ? "correct" : "WRONG";
  if (ending == kolo::elastic::Ending::left)
    std::printf("process %d has left at step %ld, %s\n", static_cast<int>(::getpid()),
                static_cast<long>(step), verdict);
  else if (kolo::rank() == 0)
    std::printf("%ld steps, %s\n", steps, verdict);
  return std::strcmp(verdict, "correct") == 0 ? 0 : 1;
}
