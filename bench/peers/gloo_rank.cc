// One rank of a flat Gloo job over TCP: … RANK SIZE STORE-DIRECTORY INTERFACE.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "support/allreduce_loop.h"

namespace {

class GlooPeer {
 public:
  GlooPeer(int rank, int size, const std::string& directory, const std::string& interface) {
    gloo::transport::tcp::attr attributes;
    attributes.iface = interface;
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(directory);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->connectFullMesh(store, device);
    context_ = context;
  }

  [[nodiscard]] int rank() const { return context_->rank; }
  [[nodiscard]] int size() const { return context_->size; }
  static std::shared_ptr<float> allocate(const std::string&, std::size_t count) {
    return bench::plain_memory(count);
  }
  void allreduce(float* data, std::size_t count) {
    gloo::AllreduceOptions options(context_);
    options.setOutput(data, count);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
  }
  void barrier() {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }

 private:
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace

int main(int argc, char** argv) {
  return bench::rank_main(argc, argv, [&](const bench::RankArguments& arguments) {
    if (argc != 8) throw std::runtime_error("expected RANK SIZE STORE-DIRECTORY INTERFACE");
    const int rank = std::stoi(argv[4]);
    if (arguments.pin) bench::pin_to_core(rank);
    GlooPeer peer(rank, std::stoi(argv[5]), argv[6], argv[7]);
    bench::serve(peer, arguments);
  });
}
