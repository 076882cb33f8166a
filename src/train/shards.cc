// The parameters of each bucket move into one flat block of shared memory, of which each rank owns
// a contiguous part. For an optimizer that works element by element (SGD, Adam …) the parts are
// equal and may cut through a parameter: the bucket is reduced by a reducescatter, and the wrapped
// optimizer gets *pieces* (one-dimensional views) as its parameters. For others (LARS, LAMB need
// norms of whole tensors) the parts consist of whole parameters, and the bucket is reduced by an
// allreduce. After the step an allgather gives every rank the parts of the others.
//
// A checkpoint has the state as one process would have it: gather_state() puts the pieces of all
// ranks together on rank 0, and share_out() cuts a whole state into the pieces of this rank.
#include "train/shards.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/errors.h"
#include "base/log.h"
#include "train/dtype.h"
#include "train/optim/serialization.h"

namespace kolo::train {
namespace {

bool is_tensor_of(const torch::IValue& value, torch::IntArrayRef sizes) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().sizes() == sizes;
}

}  // namespace

bool is_elementwise(const torch::optim::Optimizer& optimizer) {
  namespace optim = torch::optim;
  return dynamic_cast<const optim::SGD*>(&optimizer) != nullptr ||
         dynamic_cast<const optim::Adam*>(&optimizer) != nullptr ||
         dynamic_cast<const optim::AdamW*>(&optimizer) != nullptr ||
         dynamic_cast<const optim::RMSprop*>(&optimizer) != nullptr ||
         dynamic_cast<const optim::Adagrad*>(&optimizer) != nullptr;
}

class Shards::Reducer final : public GradientReducer {
 public:
  Reducer(Shards& shards, ReduceOp op, Scaling scaling)
      : shards_(shards), op_(op), scaling_(scaling) {}

  void reduce(Communicator& communicator, std::size_t index, GradientBucket& bucket) override {
    void* data = bucket.memory->data();
    const auto& planned = *bucket.plan;
    if (shards_.elementwise_)
      communicator.reducescatter(data, shards_.shards_[index].gradients->data(), planned.count, 1,
                                 planned.type, op_, scaling_);
    else
      communicator.allreduce(data, data, planned.count, planned.type, op_, scaling_);
  }

 private:
  Shards& shards_;
  ReduceOp op_;
  Scaling scaling_;
};

Shards::Shards(torch::optim::Optimizer& optimizer)
    : optimizer_(optimizer), elementwise_(is_elementwise(optimizer)) {}

Shards::~Shards() {
  if (shards_.empty()) return;
  try {
    torch::NoGradGuard no_grad;
    auto& groups = optimizer_.param_groups();
    for (std::size_t g = 0; g < groups.size(); ++g) groups[g].params() = groups_[g];
    optimizer_.state().clear();
    for (torch::Tensor& parameter : parameters_) parameter.set_data(parameter.detach().clone());
  } catch (const std::exception& error) {
    log::error("the parameters cannot be taken out of shared memory: {}", error.what());
  }
}

std::unique_ptr<GradientReducer> Shards::make_reducer(ReduceOp op, Scaling scaling) {
  return std::make_unique<Reducer>(*this, op, scaling);
}

void Shards::take_over(Communicator& communicator, GradientExchange& gradients) {
  torch::NoGradGuard no_grad;
  parameters_ = gradients.parameters();
  groups_.clear();
  for (const auto& group : optimizer_.param_groups()) groups_.push_back(group.params());
  shards_.clear();
  for (const auto& planned : gradients.buckets_planned().buckets) {
    Shard shard;
    shard.type = planned.type;
    shard.optimizer_group = planned.optimizer_group;
    shard.values = allocate(communicator, planned.count * size_of(planned.type));
    shard.flat = tensor_over(shard.values, planned.count, scalar_type(planned.type));
    for (const auto& [index, offset] : planned.members) {
      torch::Tensor parameter = parameters_[index];
      if (!parameter.is_cpu() || !parameter.is_non_overlapping_and_dense())
        throw_error(ErrorCode::unsupported,
                    "shard_optimizer_state: parameters must be dense and in main memory");
      torch::Tensor place =
          shard.flat.narrow(0, static_cast<std::int64_t>(offset), parameter.numel())
              .as_strided(parameter.sizes(), parameter.strides());
      place.copy_(parameter);
      parameter.set_data(place);
    }
    if (elementwise_)
      take_slice(communicator, shard, planned);
    else
      take_whole(communicator, shard, planned);
    shards_.push_back(std::move(shard));
  }
  share_out();
}

void Shards::take_slice(Communicator& communicator, Shard& shard,
                        const BucketPlan::Bucket& planned) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const std::size_t length = planned.count / ranks;
  for (std::size_t r = 0; r <= ranks; ++r) shard.bounds.push_back(length * r);
  const std::size_t begin = length * static_cast<std::size_t>(communicator.rank());
  shard.gradients = allocate(communicator, length * size_of(shard.type));
  const torch::Tensor gradients = tensor_over(shard.gradients, length, scalar_type(shard.type));
  for (const auto& [index, offset] : planned.members) {
    const auto size = static_cast<std::size_t>(parameters_[index].numel());
    const std::size_t from = std::max(begin, offset), to = std::min(begin + length, offset + size);
    if (from >= to) continue;
    Piece piece;
    piece.parameter = index;
    piece.first = static_cast<std::int64_t>(from - offset);
    piece.count = static_cast<std::int64_t>(to - from);
    piece.values = shard.flat.narrow(0, static_cast<std::int64_t>(from), piece.count).detach();
    piece.values.set_requires_grad(true);
    piece.gradient = gradients.narrow(0, static_cast<std::int64_t>(from - begin), piece.count);
    shard.own.push_back(std::move(piece));
  }
}

void Shards::take_whole(Communicator& communicator, Shard& shard,
                        const BucketPlan::Bucket& planned) {
  // A rank's members follow each other, so that its part is one piece; each begins a new part when
  // the one before has its share.
  const auto ranks = static_cast<std::size_t>(communicator.size());
  shard.bounds.assign(ranks + 1, planned.count);
  shard.bounds[0] = 0;
  std::size_t owner = 0;
  for (const auto& [index, offset] : planned.members) {
    while (owner + 1 < ranks && offset >= planned.count * (owner + 1) / ranks)
      shard.bounds[++owner] = offset;
    if (static_cast<int>(owner) != communicator.rank()) continue;
    shard.own.push_back({index, 0, parameters_[index].numel(), parameters_[index], {}});
  }
}

void Shards::share_out() {
  torch::NoGradGuard no_grad;
  auto& groups = optimizer_.param_groups();
  for (auto& group : groups) group.params().clear();
  StateMap whole = std::exchange(optimizer_.state(), {});
  for (const Shard& shard : shards_) {
    auto& group = groups[static_cast<std::size_t>(shard.optimizer_group)];
    for (const Piece& piece : shard.own) {
      group.params().push_back(piece.values);
      const torch::Tensor& parameter = parameters_[piece.parameter];
      const auto found = whole.find(state_key(parameter));
      if (found == whole.end()) continue;
      auto& state = optimizer_.state()[state_key(piece.values)];
      if (!elementwise_) {
        state = std::move(found->second);
        continue;
      }
      NamedValues values = values_of(*found->second);
      for (auto& [key, value] : values) {
        if (!is_tensor_of(value, parameter.sizes())) continue;
        // In the order of the parameter's memory, as pieces are.
        torch::Tensor all = torch::empty_strided(parameter.sizes(), parameter.strides(),
                                                 value.toTensor().options());
        all.copy_(value.toTensor());
        value = all.as_strided({all.numel()}, {1}).narrow(0, piece.first, piece.count).clone();
      }
      state = make_state(group.options(), values);
    }
  }
}

void Shards::hand_out(const GradientExchange& gradients) {
  if (!elementwise_) return;  // the optimizer has the parameters themselves
  for (Shard& shard : shards_)
    for (Piece& piece : shard.own)
      piece.values.mutable_grad() =
          gradients.is_used(piece.parameter) ? piece.gradient : torch::Tensor();
}

// --- checkpoints ---------------------------------------------------------------------------------

std::string Shards::own_state() const {
  torch::serialize::OutputArchive archive;
  std::int64_t pieces = 0;
  for (const Shard& shard : shards_) {
    for (const Piece& piece : shard.own) {
      const auto found = optimizer_.state().find(state_key(piece.values));
      if (found == optimizer_.state().end()) continue;
      torch::serialize::OutputArchive entry(archive.compilation_unit()),
          state(archive.compilation_unit());
      found->second->serialize(state);
      entry.write("parameter", torch::IValue(static_cast<std::int64_t>(piece.parameter)));
      entry.write("first", torch::IValue(piece.first));
      entry.write("count", torch::IValue(piece.count));
      entry.write("state", state);
      archive.write("piece" + std::to_string(pieces++), entry);
    }
  }
  archive.write("pieces", torch::IValue(pieces));
  return archive_bytes(archive);
}

std::string Shards::gather_state(Communicator& communicator) {
  if (shards_.empty()) return communicator.rank() == 0 ? optimizer_bytes(optimizer_) : "";
  const std::string mine = own_state();
  std::string all;
  const auto sizes = communicator.gather(mine.data(), mine.size(), DataType::uint8, 0,
                                         [&](std::span<const std::size_t> counts) -> void* {
                                           std::size_t total = 0;
                                           for (const std::size_t count : counts) total += count;
                                           all.resize(total);
                                           return all.data();
                                         });
  if (communicator.rank() != 0) return "";
  std::vector<std::string> of_ranks;
  std::size_t place = 0;
  for (const std::size_t size : sizes) {
    of_ranks.push_back(all.substr(place, size));
    place += size;
  }
  return whole_state(optimizer_, groups_, of_ranks);
}

std::string whole_state(const torch::optim::Optimizer& optimizer,
                        const std::vector<std::vector<torch::Tensor>>& groups,
                        const std::vector<std::string>& of_ranks) {
  torch::NoGradGuard no_grad;
  const bool elementwise = is_elementwise(optimizer);
  std::vector<torch::Tensor> parameters;  // as they are numbered: each once
  std::set<const void*> seen;
  for (const auto& group : groups)
    for (const torch::Tensor& parameter : group)
      if (seen.insert(parameter.unsafeGetTensorImpl()).second) parameters.push_back(parameter);
  std::map<const void*, NamedValues> states;  // by parameter
  for (const std::string& bytes : of_ranks) {
    torch::serialize::InputArchive archive;
    load_archive(archive, bytes);
    const auto pieces = read<std::int64_t>(archive, "pieces");
    for (std::int64_t i = 0; i < pieces; ++i) {
      torch::serialize::InputArchive entry, state;
      archive.read("piece" + std::to_string(i), entry);
      entry.read("state", state);
      const auto first = read<std::int64_t>(entry, "first");
      const auto count = read<std::int64_t>(entry, "count");
      const torch::Tensor& parameter =
          parameters.at(static_cast<std::size_t>(read<std::int64_t>(entry, "parameter")));
      NamedValues& whole = states[parameter.unsafeGetTensorImpl()];
      for (const auto& [key, value] : values_of(state)) {
        if (!elementwise || !is_tensor_of(value, {count})) {
          whole[key] = value;
          continue;
        }
        const torch::Tensor slice = value.toTensor();
        if (!whole.contains(key))
          whole[key] =
              torch::empty_strided(parameter.sizes(), parameter.strides(), slice.options());
        whole[key]
            .toTensor()
            .as_strided({parameter.numel()}, {1})
            .narrow(0, first, count)
            .copy_(slice);
      }
    }
  }
  torch::serialize::OutputArchive archive;
  const auto write_state = [&](const torch::Tensor& parameter,
                               torch::serialize::OutputArchive& state) {
    const auto found = states.find(parameter.unsafeGetTensorImpl());
    if (found == states.end()) return false;
    write_values(found->second, state);
    return true;
  };
  save_groups(optimizer, groups, write_state, archive);
  return archive_bytes(archive);
}

void Shards::load_state(const std::string& bytes) {
  if (shards_.empty()) return load_optimizer_bytes(optimizer_, bytes);
  auto& groups = optimizer_.param_groups();
  for (std::size_t g = 0; g < groups.size(); ++g) groups[g].params() = groups_[g];
  load_optimizer_bytes(optimizer_, bytes);
  share_out();
}

// --- steps ---------------------------------------------------------------------------------------

void Shards::share(Communicator& communicator) {
  const auto me = static_cast<std::size_t>(communicator.rank());
  for (Shard& shard : shards_) {
    const std::size_t element = size_of(shard.type);
    communicator.allgather(
        shard.values->data() + shard.bounds[me] * element, shard.bounds[me + 1] - shard.bounds[me],
        1, shard.type,
        [&](std::span<const std::size_t>) { return static_cast<void*>(shard.values->data()); });
  }
}

double Shards::norm(Communicator& communicator) {
  double sum = 0;
  for (const Shard& shard : shards_)
    for (const Piece& piece : shard.own)
      if (const torch::Tensor& grad = piece.values.grad(); grad.defined())
        sum += std::pow(grad.norm().item<double>(), 2);
  return std::sqrt(communicator.allreduce(sum, ReduceOp::sum));
}

void Shards::scale_gradients(double factor) {
  torch::NoGradGuard no_grad;
  for (const Shard& shard : shards_)
    for (const Piece& piece : shard.own)
      if (piece.values.grad().defined()) piece.values.grad().mul_(factor);
}

}  // namespace kolo::train
