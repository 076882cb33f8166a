#include "nas/run/ranks.h"

#include <algorithm>
#include <span>

#include "kolo/context.h"
#include "kolo/torch/state.h"

namespace kolo::nas {
namespace {

std::vector<int> first_of_each_host(const Topology& topology, std::int64_t per_node) {
  std::vector<int> chosen;
  for (int host = 0; host < topology.host_count(); ++host) {
    const std::vector<int> there = topology.ranks_on_host(host);
    const auto count = std::min(static_cast<std::size_t>(per_node), there.size());
    chosen.insert(chosen.end(), there.begin(), there.begin() + static_cast<std::ptrdiff_t>(count));
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace

Ranks Ranks::of_job(std::int64_t per_node) {
  init();
  Ranks ranks;
  ranks.rank_ = kolo::rank();
  ranks.size_ = kolo::size();
  if (per_node == 0) return ranks;
  const std::vector<int> chosen = first_of_each_host(world().topology(), per_node);
  if (static_cast<int>(chosen.size()) == ranks.size_) return ranks;
  ranks.set_ = engine().add_process_set(chosen);
  ranks.rank_ = engine().rank(ranks.set_);
  ranks.size_ = static_cast<int>(chosen.size());
  if (!ranks.watches()) ranks.group_ = engine().make_communicator(ranks.set_);
  return ranks;
}

// The world communicator is free: gradients travel on the engine's own.
Communicator& Ranks::group() const { return group_ != nullptr ? *group_ : world(); }

bool Ranks::first_says(bool mine) const { return first_says(mine ? 1.0 : 0.0) != 0; }

double Ranks::first_says(double mine) const {
  if (size_ > 1) group().broadcast(std::span(&mine, 1), 0);
  return mine;
}

void Ranks::add_up(torch::Tensor& sums) const {
  if (size_ > 1)
    group().allreduce(std::span(sums.data_ptr<double>(), static_cast<std::size_t>(sums.numel())),
                      ReduceOp::sum);
}

void Ranks::broadcast(const torch::nn::Module& module) const {
  if (size_ == 1) return;
  CollectiveOptions options;
  options.process_set = set_;
  broadcast_parameters(module, 0, options);
}

std::string Ranks::tell_watchers(const std::string& outcome) const {
  if (!has_watchers()) return outcome;
  // The first rank of the job is the first of its host, and so trains.
  std::string told = broadcast_object(outcome, 0);
  engine().remove_process_set(set_);
  return told;
}

}  // namespace kolo::nas
