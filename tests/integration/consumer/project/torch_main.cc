// A training program outside kolo's tree: averages a tensor over its ranks, and says so from rank
// 0. Usage: torch_consumer [expected number of ranks]
#include <kolo/torch.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  try {
    kolo::init();
    kolo::set_compute_threads(1);
    int expected = argc > 1 ? std::atoi(argv[1]) : 1;
    torch::Tensor mine = torch::full({3}, static_cast<float>(kolo::rank() + 1));
    kolo::world().allreduce(std::span(mine.data_ptr<float>(), 3), kolo::ReduceOp::sum);
    int sum = static_cast<int>(mine[2].item<float>());
    bool right = kolo::size() == expected && sum == expected * (expected + 1) / 2;
    if (kolo::rank() == 0)
      std::printf("libtorch %s: %d ranks, sum %d, %s\n", TORCH_VERSION, kolo::size(), sum,
                  right ? "right" : "WRONG");
    kolo::shutdown();
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "torch_consumer: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
