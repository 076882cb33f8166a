#include "train/elastic/tensor_copies.h"

namespace kolo::train {

void copy_tensor(const torch::Tensor& tensor, torch::Tensor& copy) {
  torch::NoGradGuard no_grad;
  const bool fits = copy.defined() && copy.sizes() == tensor.sizes() &&
                    copy.scalar_type() == tensor.scalar_type() && copy.device() == tensor.device();
  if (fits)
    copy.copy_(tensor);
  else
    copy = tensor.detach().clone(at::MemoryFormat::Contiguous);
}

void broadcast_tensor(const torch::Tensor& tensor, Communicator& group, int root) {
  torch::NoGradGuard no_grad;
  const torch::Tensor plain = tensor.detach().cpu().contiguous();  // itself, if it is that
  group.broadcast(plain.data_ptr(), plain.nbytes(), DataType::uint8, root);
  if (group.rank() != root && plain.data_ptr() != tensor.data_ptr()) tensor.detach().copy_(plain);
}

}  // namespace kolo::train
