// A worker of an elastic job that notes when each of its steps was done:
//   elastic_steps DIRECTORY MEGABYTES PAUSE-MS
// under kolo run (bench/elastic_bench.py). It writes lines "NANOSECONDS RANK SIZE STEP" to
// DIRECTORY/steps.PID, by the monotonic clock, and ends when DIRECTORY/stop is there.
#include <kolo/elastic.h>
#include <kolo/kolo.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::fprintf(stderr, "usage: elastic_steps DIRECTORY MEGABYTES PAUSE-MS\n");
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  std::vector<float> weights(static_cast<std::size_t>(std::atoll(argv[2])) * 250'000);
  const std::chrono::milliseconds pause(std::atoll(argv[3]));
  std::FILE* notes = std::fopen((directory / ("steps." + std::to_string(::getpid()))).c_str(), "w");
  std::int64_t step = 0;
  kolo::elastic::State state;
  state.add(step).add(weights);
  kolo::elastic::run(state, [&](kolo::elastic::State&) {
    while (true) {
      std::this_thread::sleep_for(pause);
      std::vector<std::int32_t> sum = {std::filesystem::exists(directory / "stop") ? 1 : 0, 1};
      kolo::world().allreduce(std::span(sum), kolo::ReduceOp::sum);
      if (sum[0] > 0) return;
      ++step;
      state.commit();
      const auto now = std::chrono::steady_clock::now().time_since_epoch();
      std::fprintf(
          notes, "%lld %d %d %lld\n",
          static_cast<long long>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()),
          kolo::rank(), kolo::size(), static_cast<long long>(step));
      std::fflush(notes);
    }
  });
  std::fclose(notes);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "elastic_steps: %s\n", error.what());
  return 1;
}
