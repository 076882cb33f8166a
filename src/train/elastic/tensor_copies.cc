#include "train/elastic/tensor_copies.h"

#include "base/errors.h"
#include "train/elastic/updates.h"

namespace kolo::train {

void RememberedTensor::save(const torch::Tensor& tensor) {
  torch::NoGradGuard no_grad;
  const bool fits = copy_.defined() && copy_.sizes() == tensor.sizes() &&
                    copy_.scalar_type() == tensor.scalar_type() &&
                    copy_.device() == tensor.device();
  if (fits)
    copy_.copy_(tensor);
  else
    copy_ = tensor.detach().clone(at::MemoryFormat::Contiguous);
}

void RememberedTensor::mark(const torch::Tensor& tensor) {
  copy_.reset();
  version_ = static_cast<std::uint32_t>(tensor._version());
  updates_ = parameter_updates();
}

void RememberedTensor::restore(torch::Tensor& tensor) const {
  torch::NoGradGuard no_grad;
  if (copy_.defined())
    tensor.copy_(copy_);
  else if (static_cast<std::uint32_t>(tensor._version()) != version_ ||
           parameter_updates() != updates_)
    throw_error(ErrorCode::failed_precondition,
                "elastic: a rank was lost after the optimizer's step and before commit_in_place(), "
                "so that the parameters before the step are gone; call commit_in_place() directly "
                "after step(), or commit(), which copies them");
}

void broadcast_tensor(const torch::Tensor& tensor, Communicator& group, int root) {
  torch::NoGradGuard no_grad;
  const torch::Tensor plain = tensor.detach().cpu().contiguous();  // itself, if it is that
  group.broadcast(plain.data_ptr(), plain.nbytes(), DataType::uint8, root);
  if (group.rank() != root && plain.data_ptr() != tensor.data_ptr()) tensor.detach().copy_(plain);
}

}  // namespace kolo::train
