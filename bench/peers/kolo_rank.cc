// One rank of a kolo job, with buffers of its own ("own") or from anywhere ("foreign").
#include <kolo/kolo.h>

#include "support/allreduce_loop.h"

namespace {

struct KoloPeer {
  kolo::Communicator& world;

  [[nodiscard]] int rank() const { return world.rank(); }
  [[nodiscard]] int size() const { return world.size(); }
  [[nodiscard]] std::shared_ptr<float> allocate(const std::string& mode, std::size_t count) const {
    if (mode != "own") return bench::plain_memory(count);
    auto buffer = std::make_shared<kolo::Buffer<float>>(world.allocate<float>(count));
    return {buffer, buffer->data()};
  }
  void allreduce(float* data, std::size_t count) const {
    world.allreduce(std::span<float>(data, count), kolo::ReduceOp::sum);
  }
  void barrier() const { world.barrier(); }
};

}  // namespace

int main(int argc, char** argv) {
  return bench::rank_main(argc, argv, [](const bench::RankArguments& arguments) {
    kolo::init();
    if (arguments.pin) bench::pin_to_core(kolo::local_rank());
    KoloPeer peer{kolo::world()};
    bench::serve(peer, arguments);
    kolo::shutdown();
  });
}
