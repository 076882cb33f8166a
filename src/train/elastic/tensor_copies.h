// What a commit remembers of tensors, and tensors sent to a group in place.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "kolo/communicator.h"

namespace kolo::train {

/// The value of a tensor at a commit: a copy, made again and again in the same memory, or only its
/// version, which libtorch counts up with changes in place, and the number of updates: the SGD of
/// libtorch passes the version by.
class RememberedTensor {
 public:
  void save(const torch::Tensor& tensor);
  void mark(const torch::Tensor& tensor);
  /// `tensor` has the remembered value again. Throws failed_precondition if it was only marked, and
  /// has changed since.
  void restore(torch::Tensor& tensor) const;

 private:
  torch::Tensor copy_;  // undefined: only marked
  std::uint32_t version_ = 0;
  std::uint64_t updates_ = 0;
};

/// Root's values into the memory of everybody's tensor, which has the same shape. Collective.
void broadcast_tensor(const torch::Tensor& tensor, Communicator& group, int root);

}  // namespace kolo::train
