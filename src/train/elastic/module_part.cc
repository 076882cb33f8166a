#include "base/errors.h"
#include "kolo/torch/elastic.h"
#include "train/elastic/tensor_copies.h"
#include "train/optim/serialization.h"

namespace kolo::elastic {
namespace {

class ModulePart final : public Part {
 public:
  explicit ModulePart(const torch::nn::Module& module)
      : tensors_(module.parameters()), parameters_(tensors_.size()) {
    for (const torch::Tensor& buffer : module.buffers())
      if (buffer.defined()) tensors_.push_back(buffer);
    remembered_.resize(tensors_.size());
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
    for (std::size_t i = 0; i < tensors_.size(); ++i) remembered_[i].save(tensors_[i]);
  }
  void mark() override {
    // Buffers change in the forward pass, before a step can fail.
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      i < parameters_ ? remembered_[i].mark(tensors_[i]) : remembered_[i].save(tensors_[i]);
  }
  void restore() override {
    for (std::size_t i = 0; i < tensors_.size(); ++i) remembered_[i].restore(tensors_[i]);
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

  std::vector<torch::Tensor> tensors_;  // parameters, then buffers
  std::size_t parameters_;
  std::vector<train::RememberedTensor> remembered_;
};

}  // namespace

std::unique_ptr<Part> part_of(torch::nn::Module& module) {
  return std::make_unique<ModulePart>(module);
}

}  // namespace kolo::elastic
