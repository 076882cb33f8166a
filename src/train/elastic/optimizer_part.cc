// The state of an optimizer is copied tensor by tensor, into the memory of the copy before: a
// commit after each step must not cost more than it takes to move the bytes, and one in place moves
// none. To other ranks goes an archive with everything but the bytes of tensors, and then those, in
// place.
//
// What a DistributedOptimizer has shared out between the ranks is kept in pieces (rank_pieces.h).
// It is whole between two groups, on every rank: the next DistributedOptimizer shares it out again.
#include "base/errors.h"
#include "base/frames.h"
#include "kolo/torch/elastic.h"
#include "train/elastic/rank_owned.h"
#include "train/elastic/rank_pieces.h"
#include "train/elastic/tensor_copies.h"
#include "train/optim/serialization.h"
#include "train/shards.h"

namespace kolo::elastic {
namespace {

using torch::optim::OptimizerOptions;
using torch::optim::OptimizerParamState;

class OptimizerPart final : public Part {
 public:
  explicit OptimizerPart(torch::optim::Optimizer& optimizer) : optimizer_(optimizer) {
    train::check_copyable(optimizer);
  }

  std::string bytes() override;
  void load(const std::string& bytes) override { train::load_optimizer_bytes(optimizer_, bytes); }
  void save() override;
  void mark() override;
  void restore() override;
  void broadcast(Communicator& group, int root) override;
  bool hand_over(Communicator& group) override;
  void gather(Communicator& group) override { pieces_.gather(group); }
  void enter(Communicator& group) override;

 private:
  struct Kept {
    /// Null: the parameter has none. A clone of libtorch's, which shares the tensors.
    std::unique_ptr<OptimizerParamState> state;
    std::vector<train::RememberedTensor> tensors;  // those of the state
  };
  template <class F>
  void remember(F how);
  template <class F>
  void each_parameter(F f) {
    for (auto& group : optimizer_.param_groups())
      for (const torch::Tensor& parameter : group.params()) f(parameter);
  }
  [[nodiscard]] std::vector<std::vector<torch::Tensor>> groups() const {
    std::vector<std::vector<torch::Tensor>> all;
    for (const auto& group : optimizer_.param_groups()) all.push_back(group.params());
    return all;
  }
  [[nodiscard]] OptimizerParamState* state_of(const torch::Tensor& parameter) {
    const auto found = optimizer_.state().find(train::state_key(parameter));
    return found == optimizer_.state().end() ? nullptr : found->second.get();
  }

  torch::optim::Optimizer& optimizer_;
  std::vector<std::unique_ptr<OptimizerOptions>> options_;  // of each group
  std::vector<Kept> kept_;                                  // of each parameter
  train::RankPieces pieces_;
  bool is_sharded_ = false;  // the state of the last commit is in pieces
};

/// A piece is the shard of a rank, which is "" if the state is not shared out, and its residuals.
std::string piece_of(const train::RankOwned& owned) {
  const std::string shard = owned.is_sharded() ? owned.shard() : "";
  return ByteWriter().u64(shard.size()).raw(shard).raw(owned.residuals()).bytes();
}

struct Pieces {
  std::vector<std::string> shards, residuals;
  [[nodiscard]] bool are_sharded() const { return !shards.front().empty(); }
};

Pieces pieces_of(const std::map<int, std::string>& of_ranks) {
  Pieces pieces;
  for (const auto& [rank, piece] : of_ranks) {
    ByteReader reader(piece);
    const auto shard = reader.raw(reader.u64());
    pieces.shards.emplace_back(shard);
    pieces.residuals.push_back(piece.substr(sizeof(std::uint64_t) + shard.size()));
  }
  return pieces;
}

template <class F>
void OptimizerPart::remember(F how) {
  const train::RankOwned* owned = train::rank_owned_of(optimizer_);
  is_sharded_ = owned != nullptr && owned->is_sharded();
  pieces_.keep();
  options_.clear();
  for (const auto& group : optimizer_.param_groups()) options_.push_back(group.options().clone());
  if (is_sharded_) return kept_.clear();
  std::size_t i = 0;
  each_parameter([&](const torch::Tensor& parameter) {
    if (kept_.size() == i) kept_.emplace_back();
    Kept& kept = kept_[i++];
    const OptimizerParamState* state = state_of(parameter);
    kept.state = state == nullptr ? nullptr : state->clone();
    if (state == nullptr) return;
    std::size_t t = 0;
    train::each_tensor(*kept.state, [&](torch::Tensor& tensor) {
      if (kept.tensors.size() == t) kept.tensors.emplace_back();
      how(kept.tensors[t++], tensor);
    });
  });
}

void OptimizerPart::save() {
  remember([](train::RememberedTensor& kept, torch::Tensor& tensor) { kept.save(tensor); });
}
void OptimizerPart::mark() {
  remember([](train::RememberedTensor& kept, torch::Tensor& tensor) { kept.mark(tensor); });
}

void OptimizerPart::restore() {
  if (is_sharded_ && train::rank_owned_of(optimizer_) != nullptr)
    throw_error(ErrorCode::unsupported,
                "elastic: restore() does not work inside of the function while a "
                "DistributedOptimizer with shard_optimizer_state lives");
  for (std::size_t g = 0; g < options_.size(); ++g)
    optimizer_.param_groups()[g].set_options(options_[g]->clone());
  if (is_sharded_) return optimizer_.state().clear();  // enter() puts it together
  std::size_t i = 0;
  each_parameter([&](const torch::Tensor& parameter) {
    const Kept& kept = kept_[i++];
    if (kept.state == nullptr) {
      optimizer_.state().erase(train::state_key(parameter));
      return;
    }
    auto state = kept.state->clone();
    std::size_t t = 0;
    train::each_tensor(*state, [&](torch::Tensor& tensor) { kept.tensors[t++].restore(tensor); });
    optimizer_.state()[train::state_key(parameter)] = std::move(state);
  });
}

void OptimizerPart::broadcast(Communicator& group, int root) {
  std::string outline;
  if (group.rank() == root) outline = train::optimizer_outline(optimizer_);
  auto size = static_cast<std::int64_t>(outline.size());
  group.broadcast(&size, 1, DataType::int64, root);
  outline.resize(static_cast<std::size_t>(size));
  group.broadcast(outline.data(), outline.size(), DataType::uint8, root);
  if (group.rank() != root) train::load_optimizer_bytes(optimizer_, outline);
  each_parameter([&](const torch::Tensor& parameter) {
    OptimizerParamState* state = state_of(parameter);
    if (state == nullptr) return;
    train::each_tensor(*state, [&](torch::Tensor& tensor) {
      if (group.rank() != root) tensor = torch::empty(tensor.sizes(), tensor.options());
      train::broadcast_tensor(tensor, group, root);
    });
  });
}

// --- what is shared out --------------------------------------------------------------------------

bool OptimizerPart::hand_over(Communicator& group) {
  const train::RankOwned* owned = train::rank_owned_of(optimizer_);
  if (owned == nullptr)
    pieces_.hand_over_nothing();
  else
    pieces_.hand_over(group, piece_of(*owned));
  return owned != nullptr;
}

std::string OptimizerPart::bytes() {
  if (!is_sharded_) return train::optimizer_bytes(optimizer_);
  KOLO_CHECK(pieces_.has_all());
  const Pieces pieces = pieces_of(pieces_.kept());
  const train::RankOwned* owned = train::rank_owned_of(optimizer_);
  return train::whole_state(optimizer_, owned != nullptr ? owned->groups() : groups(),
                            pieces.shards);
}

void OptimizerPart::enter(Communicator& group) {
  const auto& of_ranks = pieces_.gather(group);
  // A DistributedOptimizer of this group has shared the state out already.
  if (of_ranks.empty() || train::rank_owned_of(optimizer_) != nullptr) return;
  Pieces pieces = pieces_of(of_ranks);
  if (pieces.are_sharded())
    train::load_optimizer_bytes(optimizer_,
                                train::whole_state(optimizer_, groups(), pieces.shards));
  train::leave_residuals(optimizer_, std::move(pieces.residuals));
}

}  // namespace

std::unique_ptr<Part> part_of(torch::optim::Optimizer& optimizer) {
  return std::make_unique<OptimizerPart>(optimizer);
}

}  // namespace kolo::elastic
