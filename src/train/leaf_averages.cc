#include "train/leaf_averages.h"

#include <map>

#include "comm/tree_allreduce.h"
#include "train/dtype.h"

namespace kolo::train {

void LeafAverages::add(const std::vector<torch::Tensor>& tensors) {
  for (const torch::Tensor& tensor : tensors)
    if (tensor.defined()) tensors_.push_back(tensor);
  flats_.clear();
}

void LeafAverages::make_places(Communicator& communicator) {
  std::map<torch::ScalarType, Flat> by_type;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].is_floating_point()) continue;
    Flat& flat = by_type[tensors_[i].scalar_type()];
    flat.members.push_back(i);
    flat.count += static_cast<std::size_t>(tensors_[i].numel());
  }
  for (auto& [type, flat] : by_type) {
    flat.type = data_type(type);
    const std::size_t stride = comm::block_stride(flat.count, flat.type);
    flat.memory = allocate(communicator, share_.places() * stride);
    flat.places = places_over(flat.memory, share_.places(), flat.count, type);
    flats_.push_back(std::move(flat));
  }
}

void LeafAverages::begin_leaf(std::size_t leaf, Communicator& communicator) {
  torch::NoGradGuard no_grad;
  if (leaf > 0) return abandon();  // what the leaf before made of them is in its place
  if (flats_.empty()) make_places(communicator);
  before_.clear();
  for (const torch::Tensor& tensor : tensors_) before_.push_back(tensor.clone());
}

void LeafAverages::end_leaf(std::size_t leaf) {
  torch::NoGradGuard no_grad;
  for (Flat& flat : flats_) {
    std::vector<torch::Tensor> parts;
    for (const std::size_t i : flat.members) parts.push_back(tensors_[i].cpu().reshape({-1}));
    share_.fold(leaf, flat.places, parts.size() == 1 ? parts[0] : torch::cat(parts));
  }
}

void LeafAverages::reduce(Communicator& communicator) {
  for (Flat& flat : flats_)
    comm::tree_allreduce(communicator, flat.memory->data(), flat.count, flat.type,
                         1.0 / share_.ranks().count(), share_.order());
}

void LeafAverages::accept() {
  torch::NoGradGuard no_grad;
  for (const Flat& flat : flats_) {
    std::int64_t place = 0;
    for (const std::size_t i : flat.members) {
      const std::int64_t count = tensors_[i].numel();
      tensors_[i].copy_(flat.places[0].narrow(0, place, count).view(tensors_[i].sizes()));
      place += count;
    }
  }
}

void LeafAverages::abandon() {
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < before_.size(); ++i) tensors_[i].copy_(before_[i]);
}

}  // namespace kolo::train
