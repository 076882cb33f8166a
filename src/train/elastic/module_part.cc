#include "base/errors.h"
#include "kolo/torch/elastic.h"
#include "train/elastic/tensor_copies.h"
#include "train/optim/serialization.h"

namespace kolo::elastic {
namespace {

class ModulePart final : public Part {
 public:
  explicit ModulePart(const torch::nn::Module& module) : tensors_(module.parameters()) {
    for (const torch::Tensor& buffer : module.buffers())
      if (buffer.defined()) tensors_.push_back(buffer);
    copies_.resize(tensors_.size());
  }

  std::string bytes() override { return train::tensors_bytes(numbered()); }
  void load(const std::string& bytes) override {
    const auto loaded = train::load_tensors(bytes);
    torch::NoGradGuard no_grad;
    for (auto& [name, tensor] : numbered()) {
      const auto found = loaded.find(name);
      if (found == loaded.end() || found->second.sizes() != tensor.sizes())
        throw_error(ErrorCode::invalid_argument,
                    "the state of another network was loaded: tensor {} does not fit", name);
      tensor.copy_(found->second);
    }
  }
  void save() override {
    for (std::size_t i = 0; i < tensors_.size(); ++i) train::copy_tensor(tensors_[i], copies_[i]);
  }
  void restore() override {
    torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < tensors_.size(); ++i) tensors_[i].copy_(copies_[i]);
  }
  void broadcast(Communicator& group, int root) override {
    for (const torch::Tensor& tensor : tensors_) train::broadcast_tensor(tensor, group, root);
  }

 private:
  [[nodiscard]] train::NamedTensors numbered() const {
    train::NamedTensors named;
    for (const torch::Tensor& tensor : tensors_) named[std::to_string(named.size())] = tensor;
    return named;
  }

  std::vector<torch::Tensor> tensors_, copies_;
};

}  // namespace

std::unique_ptr<Part> part_of(torch::nn::Module& module) {
  return std::make_unique<ModulePart>(module);
}

}  // namespace kolo::elastic
