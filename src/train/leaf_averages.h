// Tensors besides gradients that are averaged over the virtual ranks with every step: running
// statistics of batch normalisation, losses.
//
// Every virtual rank begins with their values before the step; afterwards they are the average of
// what the virtual ranks have made of them. Tensors of integers are not averaged: all virtual ranks
// are expected to make the same of them (a count of batches, say).
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "kolo/communicator.h"
#include "train/gradient_reducer.h"
#include "train/virtual_share.h"

namespace kolo::train {

class LeafAverages {
 public:
  /// The share must outlive it.
  explicit LeafAverages(const VirtualShare& share) : share_(share) {}

  /// Between steps.
  void add(const std::vector<torch::Tensor>& tensors);

  /// A virtual rank begins or ends its part of the step.
  void begin_leaf(std::size_t leaf, Communicator& communicator);
  void end_leaf(std::size_t leaf);
  /// Collective, after the last leaf. The tensors are not changed yet.
  void reduce(Communicator& communicator);
  /// The tensors become the averages, or what they were before the step.
  void accept();
  void abandon();

 private:
  /// All tensors of a type, one after the other.
  struct Flat {
    DataType type = DataType::float32;
    std::vector<std::size_t> members;  // in tensors_
    std::size_t count = 0;
    SharedBytes memory;
    std::vector<torch::Tensor> places;
  };
  void make_places(Communicator& communicator);

  const VirtualShare& share_;
  std::vector<torch::Tensor> tensors_, before_;
  std::vector<Flat> flats_;
};

}  // namespace kolo::train
