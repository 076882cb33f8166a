// Parts whose state is a short text: schedulers, samplers, the generator.
#include "kolo/random.h"
#include "kolo/torch/elastic.h"
#include "train/generator.h"

namespace kolo::elastic {
namespace {

template <class T>
class TextPart : public Part {
 public:
  explicit TextPart(T& kept) : kept_(kept) {}
  std::string bytes() override { return kept_.state(); }
  void load(const std::string& bytes) override { kept_.load_state(bytes); }

 protected:
  T& kept_;
};

class ElasticSamplerPart final : public TextPart<ElasticSampler> {
 public:
  using TextPart::TextPart;
  void enter(Communicator& group) override { kept_.repartition(group.rank(), group.size()); }
};

class RandomPart final : public Part {
 public:
  std::string bytes() override { return train::generator_bytes(); }
  void load(const std::string& bytes) override { train::load_generator(bytes); }
  void broadcast(Communicator& group, int root) override {
    const auto rank = static_cast<std::uint64_t>(group.rank());
    Part::broadcast(group, root);
    if (group.rank() != root)
      torch::manual_seed(Random(0).stream(train::generator_bytes(), rank).next());
  }
};

}  // namespace

std::unique_ptr<Part> part_of(RateScheduler& scheduler) {
  return std::make_unique<TextPart<RateScheduler>>(scheduler);
}
std::unique_ptr<Part> part_of(DistributedSampler& sampler) {
  return std::make_unique<TextPart<DistributedSampler>>(sampler);
}
std::unique_ptr<Part> part_of(ElasticSampler& sampler) {
  return std::make_unique<ElasticSamplerPart>(sampler);
}
std::unique_ptr<Part> part_of_random() { return std::make_unique<RandomPart>(); }

TorchState::TorchState(torch::nn::Module& module, torch::optim::Optimizer& optimizer) {
  add(part_of(module)).add(part_of(optimizer)).add(part_of_random());
}

}  // namespace kolo::elastic
