#include "train/virtual_share.h"

#include <array>
#include <cstring>

#include "base/errors.h"
#include "comm/tree_allreduce.h"
#include "train/dtype.h"
#include "train/gradient_reducer.h"

namespace kolo::train {
namespace {

std::vector<std::vector<int>> shares_of(const VirtualRanks& ranks) {
  std::vector<std::vector<int>> shares;
  for (int r = 0; r < ranks.ranks(); ++r) shares.push_back(ranks.of(r));
  return shares;
}

}  // namespace

VirtualShare::VirtualShare(VirtualRanks ranks, int rank)
    : ranks_(ranks),
      mine_(ranks.of(rank)),
      fold_(comm::fold_of(ranks.count(), mine_)),
      order_(ranks.count(), shares_of(ranks)) {
  std::size_t held = 0;
  for (const int merges : fold_.merges) {
    held_.push_back(held);
    held = held + 1 - static_cast<std::size_t>(merges);
  }
}

void VirtualShare::fold(std::size_t leaf, std::span<torch::Tensor> places,
                        const torch::Tensor& value) const {
  const std::size_t held = held_[leaf];
  const auto merges = static_cast<std::size_t>(fold_.merges[leaf]);
  torch::Tensor& target = places[merges == 0 ? held : held - 1];
  if (merges > 0) {
    // Also a zero is added: it makes +0 of -0, whoever adds it.
    if (value.defined())
      target.add_(value);
    else
      target.add_(0);
  } else if (!value.defined()) {
    target.zero_();
  } else if (value.is_cpu() && value.strides() == target.strides() &&
             value.scalar_type() == target.scalar_type() && value.is_non_overlapping_and_dense()) {
    std::memcpy(target.data_ptr(), value.data_ptr(), target.nbytes());
  } else {
    target.copy_(value);
  }
  for (std::size_t merge = 1; merge < merges; ++merge)
    places[held - 1 - merge].add_(places[held - merge]);
}

void check_same_bits(Communicator& communicator, int virtual_ranks, std::uint64_t seed) {
  const std::array<std::int64_t, 3> mine{virtual_ranks, torch::get_num_threads(),
                                         static_cast<std::int64_t>(seed)};
  constexpr std::array<const char*, 3> kWhat{"virtual ranks", "threads", "as seed"};
  const auto all = communicator.allgather(std::span<const std::int64_t>(mine));
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != all[i % mine.size()])
      throw_error(ErrorCode::invalid_argument,
                  "DistributedOptimizer: rank 0 has {} {}, rank {} has {}; virtual ranks need the "
                  "same on all ranks{}",
                  all[i % mine.size()], kWhat[i % mine.size()], i / mine.size(), all[i],
                  i % mine.size() == 1 ? " (OMP_NUM_THREADS)" : "");
}

torch::Tensor sum_leaves(Communicator& communicator, const VirtualShare& share,
                         const torch::Tensor& rows) {
  torch::NoGradGuard no_grad;
  if (rows.dim() < 1 || rows.size(0) != static_cast<std::int64_t>(share.mine().size()))
    throw_error(
        ErrorCode::invalid_argument,
        "sum_over_virtual_ranks: {} rows are needed, one for each virtual rank of this rank",
        share.mine().size());
  const torch::Tensor flat = rows.cpu().reshape({rows.size(0), -1});
  const auto count = static_cast<std::size_t>(flat.size(1));
  const DataType type = data_type(flat.scalar_type());
  const SharedBytes memory =
      allocate(communicator, share.places() * comm::block_stride(count, type));
  auto places = places_over(memory, share.places(), count, flat.scalar_type());
  for (std::size_t i = 0; i < share.mine().size(); ++i)
    share.fold(i, places, flat[static_cast<std::int64_t>(i)].contiguous());
  comm::tree_allreduce(communicator, memory->data(), count, type, 1.0, share.order());
  return places[0].clone().reshape(rows.sizes().slice(1));
}

}  // namespace kolo::train
