// The random stream of a micro-batch takes the place of libtorch's own for a while.
#include "train/micro_batch.h"

#include <torch/torch.h>

#include <mutex>

#include "kolo/torch/distributed_optimizer.h"

namespace kolo {
namespace {

thread_local bool is_inside = false;

}  // namespace

bool train::is_in_micro_batch() noexcept { return is_inside; }

DistributedOptimizer::MicroBatch::MicroBatch(std::uint64_t seed)
    : seed_(seed), generator_before_(at::detail::getDefaultCPUGenerator().get_state()) {
  torch::manual_seed(seed);
  is_inside = true;
}

DistributedOptimizer::MicroBatch::~MicroBatch() {
  is_inside = false;
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(generator_before_);
}

}  // namespace kolo
