// Copies of tensors that are made again and again, and tensors sent to a group in place.
#pragma once

#include <torch/torch.h>

#include "kolo/communicator.h"

namespace kolo::train {

/// `copy` becomes a copy of `tensor`, in its old memory if that fits.
void copy_tensor(const torch::Tensor& tensor, torch::Tensor& copy);

/// Root's values into the memory of everybody's tensor, which has the same shape. Collective.
void broadcast_tensor(const torch::Tensor& tensor, Communicator& group, int root);

}  // namespace kolo::train
