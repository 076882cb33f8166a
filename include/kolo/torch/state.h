// Starting with the same state on every rank: broadcast of parameters, of optimizer state, and of
// any other object.
#pragma once

#include <torch/torch.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kolo/torch/collectives.h"

namespace kolo {

// All of these are collective over options.process_set; `root_rank` is a rank of the whole job.
// Of the options, name, process_set and engine matter.

// --- objects -------------------------------------------------------------------------------------

/// Root's bytes, on every member. Elsewhere `bytes` is not looked at.
[[nodiscard]] std::string broadcast_object(const std::string& bytes, int root_rank = 0,
                                           CollectiveOptions options = {});
/// Every member's bytes, in their order.
[[nodiscard]] std::vector<std::string> allgather_object(const std::string& bytes,
                                                        CollectiveOptions options = {});
/// The same for JSON text, which is checked before it is sent (invalid_argument on every member
/// that would have received it) and arrives without insignificant spaces.
[[nodiscard]] std::string broadcast_json(const std::string& text, int root_rank = 0,
                                         CollectiveOptions options = {});
[[nodiscard]] std::vector<std::string> allgather_json(const std::string& text,
                                                      CollectiveOptions options = {});

// --- parameters ----------------------------------------------------------------------------------

/// Root's values into everybody's tensors. Ranks must have the same tensors in the same order.
void broadcast_parameters(const std::vector<torch::Tensor>& tensors, int root_rank = 0,
                          CollectiveOptions options = {});
/// By name: the order does not matter, and an error names the tensor.
void broadcast_parameters(const std::vector<std::pair<std::string, torch::Tensor>>& tensors,
                          int root_rank = 0, CollectiveOptions options = {});
/// Parameters and buffers (running means, say) of a network.
void broadcast_parameters(const torch::nn::Module& module, int root_rank = 0,
                          CollectiveOptions options = {});

/// Options (learning rate …) and state of root's optimizer. State that root does not have yet, as
/// before the first step, is removed on the others; state that they do not have is made. For SGD,
/// Adam, AdamW, RMSprop, Adagrad, Lars and Lamb, also while a DistributedOptimizer is around it,
/// unless that shares the state out; throws unsupported for others (on every member).
void broadcast_optimizer_state(torch::optim::Optimizer& optimizer, int root_rank = 0,
                               CollectiveOptions options = {});

// --- metrics -------------------------------------------------------------------------------------

using Metrics = std::map<std::string, double>;

/// Mean of each metric over the members, weighted (by the samples that each has seen, say). Same
/// bits on every member. Throws invalid_argument on every member when their names differ.
[[nodiscard]] Metrics average_metrics(const Metrics& metrics, double weight = 1.0,
                                      CollectiveOptions options = {});

}  // namespace kolo
