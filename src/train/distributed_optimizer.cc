// The public face of GradientExchange and Shards: checks the options, names the parameters, and
// puts the parts in order in step(): wait for the gradients, clip, let the wrapped optimizer step,
// share the new parameters when its state is sharded. With Adasum the change that the wrapped
// optimizer makes is reduced instead of the gradient (step_with_adasum). With one rank there are no
// hooks and no buckets.
#include "kolo/torch/distributed_optimizer.h"

#include <malloc.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "base/env.h"
#include "base/errors.h"
#include "base/log.h"
#include "kolo/torch/threads.h"
#include "train/dtype.h"
#include "train/elastic/rank_owned.h"
#include "train/elastic/updates.h"
#include "train/gradient_exchange.h"
#include "train/optim/serialization.h"
#include "train/shards.h"
#include "train/virtual_share.h"

namespace kolo {

using train::GradientExchange;
using train::ParameterInfo;
using train::Shards;
using train::VirtualShare;

namespace {

constexpr std::size_t kDefaultBucketBytes = std::size_t{4} << 20;

std::size_t bucket_bytes_of(const DistributedOptimizerOptions& options) {
  if (options.bucket_bytes > 0) return options.bucket_bytes;
  const auto value = setting_integer("BUCKET_BYTES");
  return value && *value > 0 ? static_cast<std::size_t>(*value) : kDefaultBucketBytes;
}

void check(const DistributedOptimizerOptions& options) {
  const auto wrong = [](const std::string& why) {
    throw_error(ErrorCode::invalid_argument, "DistributedOptimizer: {}", why);
  };
  const bool reduces = options.op == ReduceOp::average || options.op == ReduceOp::sum;
  if (!reduces && options.op != ReduceOp::adasum)
    wrong(fmt::format("op must be average, sum or adasum, not {}", to_string(options.op)));
  if (options.backward_passes_per_step < 1)
    wrong(fmt::format("backward_passes_per_step is {}, but must be at least 1",
                      options.backward_passes_per_step));
  if (options.gradient_predivide_factor != 1.0 && options.op != ReduceOp::average)
    wrong("gradient_predivide_factor needs op average");
  if (!(options.gradient_predivide_factor > 0) || !std::isfinite(options.gradient_predivide_factor))
    wrong("gradient_predivide_factor must be positive");
  if (options.num_groups < 0)
    wrong(fmt::format("num_groups is {}, but cannot be negative", options.num_groups));
  if (options.num_groups > 0 && !options.groups.empty())
    wrong("set either groups or num_groups, not both");
  if (options.clip_global_norm < 0) wrong("clip_global_norm cannot be negative");
  if (options.shard_optimizer_state &&
      (options.op == ReduceOp::adasum || options.compression.kind != Compression::Kind::none))
    wrong("shard_optimizer_state works only with average and sum, and without compression");
  if (virtual_rank_count(options.virtual_ranks) == 0) return;
  if (options.op == ReduceOp::adasum) wrong("virtual_ranks works only with average and sum");
  if (options.compression.kind != Compression::Kind::none)
    wrong("virtual_ranks works only without compression, which depends on who computed what");
  if (options.shard_optimizer_state)
    wrong("virtual_ranks works only without shard_optimizer_state, which depends on the ranks");
}

/// Every step allocates gradients and activations of the same sizes and frees them. By default
/// glibc returns the large ones to the system each time and gets them back page by page, set to
/// zero: a tenth of a step of a net with large layers.
void keep_freed_memory() {
#ifdef __GLIBC__
  static const bool done [[maybe_unused]] = [] {
    constexpr int kLargest = std::numeric_limits<int>::max();
    return ::mallopt(M_MMAP_THRESHOLD, 1 << 30) != 0 && ::mallopt(M_TRIM_THRESHOLD, kLargest) != 0;
  }();
#endif
}

/// Names by tensor; checks that they are unique and cover the optimizer's parameters.
std::map<const void*, std::string> names_of(
    const torch::optim::Optimizer& optimizer,
    const torch::OrderedDict<std::string, torch::Tensor>& named) {
  std::map<const void*, std::string> names;
  for (const auto& entry : named) names.emplace(entry.value().unsafeGetTensorImpl(), entry.key());
  int group_index = 0;
  for (const auto& group : optimizer.param_groups()) {
    int index = 0;
    for (const auto& parameter : group.params()) {
      const void* key = parameter.unsafeGetTensorImpl();
      if (named.is_empty())
        names.emplace(key, fmt::format("parameter.{}.{}", group_index, index));
      else if (!names.contains(key))
        throw_error(ErrorCode::invalid_argument,
                    "DistributedOptimizer: parameter {} of group {} has no name; pass the "
                    "named_parameters() of the whole network",
                    index, group_index);
      ++index;
    }
    ++group_index;
  }
  return names;
}

void assign_groups(std::vector<ParameterInfo>& infos, const std::vector<torch::Tensor>& parameters,
                   const DistributedOptimizerOptions& options) {
  std::map<const void*, std::size_t> place;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    place[parameters[i].unsafeGetTensorImpl()] = i;
  int group = 0;
  for (const auto& members : options.groups) {
    for (const torch::Tensor& member : members) {
      const auto found = place.find(member.unsafeGetTensorImpl());
      if (found == place.end())
        throw_error(ErrorCode::invalid_argument,
                    "DistributedOptimizer: group {} has a tensor that the optimizer does not train",
                    group);
      if (infos[found->second].user_group >= 0)
        throw_error(ErrorCode::invalid_argument, "DistributedOptimizer: '{}' is in two groups",
                    infos[found->second].name);
      infos[found->second].user_group = group;
    }
    ++group;
  }
  for (std::size_t i = 0; options.num_groups > 0 && i < infos.size(); ++i)
    infos[i].user_group =
        static_cast<int>(i * static_cast<std::size_t>(options.num_groups) / infos.size());
}

}  // namespace

struct DistributedOptimizer::State final : train::RankOwned {
  torch::optim::Optimizer& optimizer;
  Options options;
  Engine* engine = nullptr;
  bool is_alone = true;
  std::uint64_t steps = 0;
  std::vector<torch::Tensor> parameters;
  std::unique_ptr<VirtualShare> share;
  std::unique_ptr<Shards> shards;
  std::unique_ptr<GradientExchange> exchange;
  bool is_synchronized = false;
  bool skips = false;
  bool has_warned = false;
  std::optional<train::OwnsAlone> owns_alone;

  State(torch::optim::Optimizer& wrapped, Options chosen)
      : optimizer(wrapped), options(std::move(chosen)) {}

  void step_with_adasum();

  // --- RankOwned --------------------------------------------------------------------------------
  [[nodiscard]] bool is_sharded() const override {
    return shards != nullptr && shards->has_taken_over();
  }
  [[nodiscard]] std::string shard() const override { return shards->own_state(); }
  [[nodiscard]] std::string residuals() const override { return exchange->residuals(); }
  [[nodiscard]] std::vector<std::vector<torch::Tensor>> groups() const override {
    return shards->groups();
  }

  /// The exchange, if there are virtual ranks.
  [[nodiscard]] GradientExchange& with_share() const {
    if (share == nullptr)
      throw_error(ErrorCode::failed_precondition,
                  "DistributedOptimizer: there are no virtual ranks; set virtual_ranks, or start "
                  "with kolo run --virtual-ranks");
    return *exchange;
  }
};

DistributedOptimizer::DistributedOptimizer(
    torch::optim::Optimizer& optimizer,
    const torch::OrderedDict<std::string, torch::Tensor>& named_parameters, Options options)
    : state_(std::make_unique<State>(optimizer, std::move(options))) {
  State& state = *state_;
  check(state.options);
  keep_freed_memory();
  state.engine = state.options.engine != nullptr ? state.options.engine : &engine();
  const auto names = names_of(optimizer, named_parameters);
  std::vector<ParameterInfo> infos;
  std::set<const void*> seen;
  for (std::size_t g = 0; g < optimizer.param_groups().size(); ++g) {
    for (const auto& parameter : optimizer.param_groups()[g].params()) {
      const void* key = parameter.unsafeGetTensorImpl();
      if (!seen.insert(key).second) continue;
      ParameterInfo info;
      info.name = names.at(key);
      info.shape = parameter.sizes().vec();
      info.type = train::data_type(parameter.scalar_type());
      info.count = static_cast<std::size_t>(parameter.numel());
      info.optimizer_group = static_cast<int>(g);
      infos.push_back(std::move(info));
      state.parameters.push_back(parameter);
    }
  }
  assign_groups(infos, state.parameters, state.options);
  const ProcessSetId set = state.options.process_set;
  state.is_alone = !state.engine->is_member(set) || state.engine->size(set) == 1;
  const int virtual_ranks = kolo::virtual_rank_count(state.options.virtual_ranks);
  if (virtual_ranks > 0 && state.engine->is_member(set)) {
    if (!compute_threads_are_chosen()) set_compute_threads(1);
    state.share = std::make_unique<VirtualShare>(
        VirtualRanks(virtual_ranks, state.engine->size(set)), state.engine->rank(set));
  }
  const std::vector<std::string> residuals = train::take_residuals(optimizer);
  if (state.is_alone && state.share == nullptr) return;

  const double factor = state.options.gradient_predivide_factor;
  const Scaling scaling{1.0 / factor, factor};
  train::ExchangeOptions exchange;
  exchange.passes = state.options.backward_passes_per_step;
  exchange.sparse_as_dense = state.options.sparse_as_dense || state.options.shard_optimizer_state;
  exchange.uses_hooks = state.options.op != ReduceOp::adasum;
  exchange.op = state.options.op;
  exchange.rules.bucket_bytes = bucket_bytes_of(state.options);
  const auto kind = state.options.compression.kind;
  const bool keeps_residuals =
      kind == Compression::Kind::power_sgd || kind == Compression::Kind::top_k;
  exchange.autotune = (state.options.autotune || setting_flag("AUTOTUNE").value_or(false)) &&
                      !state.options.shard_optimizer_state && state.share == nullptr &&
                      !keeps_residuals;
  exchange.autotune_log = !state.options.autotune_log.empty()
                              ? state.options.autotune_log
                              : setting("AUTOTUNE_LOG").value_or("");
  std::unique_ptr<train::GradientReducer> reducer;
  if (state.options.shard_optimizer_state) {
    state.shards = std::make_unique<Shards>(optimizer);
    reducer = state.shards->make_reducer(state.options.op, scaling);
    exchange.rules.shards = state.engine->size(set);
  } else if (state.share != nullptr) {
    const bool averages = state.options.op == ReduceOp::average;
    exchange.share = state.share.get();
    exchange.leaf_scale = scaling.prescale;
    reducer = train::make_tree_reducer(state.share->order(),
                                       scaling.postscale / (averages ? virtual_ranks : 1));
  } else {
    reducer = train::make_gradient_reducer(state.options.compression, state.options.op, scaling);
  }
  state.exchange =
      std::make_unique<GradientExchange>(*state.engine, set, state.parameters, std::move(infos),
                                         std::move(reducer), std::move(exchange));
  if (state.share != nullptr)
    train::check_same_bits(state.exchange->pipeline().communicator(), virtual_ranks,
                           state.options.seed);
  if (keeps_residuals && !residuals.empty()) state.exchange->load_residuals(residuals);
  if (keeps_residuals || state.shards != nullptr) state.owns_alone.emplace(optimizer, state);
  if (state.shards == nullptr) return;
  state.exchange->refuse_zeros();
  state.exchange->when_planned([&state](Communicator& communicator) {
    state.shards->take_over(communicator, *state.exchange);
  });
}

DistributedOptimizer::~DistributedOptimizer() = default;

torch::optim::Optimizer& DistributedOptimizer::optimizer() noexcept { return state_->optimizer; }

void DistributedOptimizer::synchronize() {
  State& state = *state_;
  if (state.exchange == nullptr || state.options.op == ReduceOp::adasum) return;
  state.exchange->finish();
  if (state.shards != nullptr) state.shards->hand_out(*state.exchange);
  state.is_synchronized = true;
}

torch::Tensor DistributedOptimizer::step(const torch::optim::Optimizer::LossClosure& closure) {
  State& state = *state_;
  torch::Tensor loss;
  if (closure != nullptr) {
    torch::AutoGradMode with_grad(true);
    loss = closure();
  }
  if (state.options.op == ReduceOp::adasum && !state.is_alone) {
    state.step_with_adasum();
    ++state.steps;
    return loss;
  }
  if (!state.skips) {
    if (state.is_synchronized && !state.has_warned) {
      state.has_warned = true;
      log::warning(
          "DistributedOptimizer: step() after synchronize() reduces the gradients a second time; "
          "keep a skip_synchronize() alive during step()");
    }
    synchronize();
  }
  if (state.options.clip_global_norm > 0) clip_grad_norm(state.options.clip_global_norm);
  ++train::parameter_updates();
  state.optimizer.step();
  if (state.shards != nullptr) state.shards->share(state.exchange->pipeline().communicator());
  state.is_synchronized = false;
  ++state.steps;
  return loss;
}

/// Every rank steps by itself; what is combined are the changes.
void DistributedOptimizer::State::step_with_adasum() {
  torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> before, gradients;
  for (torch::Tensor& parameter : parameters) before.push_back(parameter.clone());
  ++train::parameter_updates();
  optimizer.step();
  // The exchange finds the changes where it looks for gradients.
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    gradients.push_back(parameters[i].grad());
    parameters[i].mutable_grad() = parameters[i] - before[i];
  }
  exchange->finish();
  std::size_t b = 0;
  for (auto& bucket : exchange->buckets()) {
    const auto& members = exchange->buckets_planned().buckets[b++].members;
    for (std::size_t m = 0; m < members.size(); ++m) {
      torch::Tensor& parameter = parameters[members[m].parameter];
      parameter.copy_(before[members[m].parameter] + bucket.views[m]);
    }
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].mutable_grad() = gradients[i];
}

void DistributedOptimizer::zero_grad(bool set_to_none) {
  State& state = *state_;
  if (state.exchange != nullptr && state.exchange->has_gradients())
    throw_error(ErrorCode::failed_precondition,
                "DistributedOptimizer: zero_grad() was called between backward and step(), while "
                "gradients are being exchanged; call step() or synchronize() first");
  torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : state.parameters) {
    torch::Tensor& grad = parameter.mutable_grad();
    if (!grad.defined()) continue;
    if (set_to_none || grad.is_sparse())
      grad.reset();
    else
      grad.zero_();
  }
}

double DistributedOptimizer::clip_grad_norm(double max_norm) {
  State& state = *state_;
  if (!(max_norm > 0))
    throw_error(ErrorCode::invalid_argument, "clip_grad_norm: {} is not positive", max_norm);
  torch::NoGradGuard no_grad;
  if (!state.is_synchronized) synchronize();
  constexpr double kSmall = 1e-6;  // as torch's clip_grad_norm_
  if (state.shards != nullptr) {
    const double norm = state.shards->norm(state.exchange->pipeline().communicator());
    if (norm > max_norm) state.shards->scale_gradients(max_norm / (norm + kSmall));
    return norm;
  }
  // In double and in the order of the parameters: the same bits on every rank.
  double sum = 0;
  for (const torch::Tensor& parameter : state.parameters)
    if (parameter.grad().defined()) {
      const torch::Tensor& grad = parameter.grad();
      sum += std::pow((grad.is_sparse() ? grad._values() : grad).norm().item<double>(), 2);
    }
  const double norm = std::sqrt(sum);
  if (norm > max_norm)
    for (torch::Tensor& parameter : state.parameters)
      if (parameter.grad().defined()) parameter.mutable_grad().mul_(max_norm / (norm + kSmall));
  return norm;
}

void DistributedOptimizer::set_backward_passes_per_step(int passes) {
  if (passes < 1)
    throw_error(ErrorCode::invalid_argument,
                "DistributedOptimizer: backward_passes_per_step is {}, but must be at least 1",
                passes);
  state_->options.backward_passes_per_step = passes;
  if (state_->exchange != nullptr) state_->exchange->set_passes(passes);
}

void DistributedOptimizer::measure_norms(bool on) {
  if (state_->share != nullptr)
    throw_error(ErrorCode::unsupported,
                "DistributedOptimizer: norms are not measured with virtual ranks");
  if (state_->exchange != nullptr) state_->exchange->measure_norms(on);
}
DistributedOptimizer::Norms DistributedOptimizer::norms() const noexcept {
  return state_->exchange != nullptr ? state_->exchange->norms() : Norms{};
}

DistributedOptimizer::Times DistributedOptimizer::take_times() {
  if (state_->exchange == nullptr) return {};
  const auto times = state_->exchange->pipeline().take_times();
  return {times.total, times.in_finish, times.steps};
}

std::string DistributedOptimizer::gather_optimizer_state() {
  State& state = *state_;
  train::check_copyable(state.optimizer);  // on every rank: nobody may wait for one that threw
  if (state.shards != nullptr)
    return state.shards->gather_state(state.exchange->pipeline().communicator());
  const bool is_first = state.is_alone || state.engine->rank(state.options.process_set) == 0;
  return is_first ? train::optimizer_bytes(state.optimizer) : "";
}

void DistributedOptimizer::load_optimizer_state(const std::string& bytes) {
  if (state_->shards != nullptr)
    state_->shards->load_state(bytes);
  else
    train::load_optimizer_bytes(state_->optimizer, bytes);
}

std::string DistributedOptimizer::residuals() const {
  return state_->exchange == nullptr ? "" : state_->exchange->residuals();
}

void DistributedOptimizer::load_residuals(const std::vector<std::string>& of_ranks) {
  if (state_->exchange != nullptr) return state_->exchange->load_residuals(of_ranks);
  for (const std::string& bytes : of_ranks)
    if (!bytes.empty()) {
      log::warning(
          "DistributedOptimizer: a job of one rank compresses nothing, so the residuals of the "
          "checkpoint are dropped");
      return;
    }
}

std::size_t DistributedOptimizer::bucket_count() const noexcept {
  return state_->exchange == nullptr ? 0 : state_->exchange->buckets_planned().buckets.size();
}

bool DistributedOptimizer::is_tuning() const noexcept {
  return state_->exchange != nullptr && state_->exchange->is_tuning();
}

// --- virtual ranks -------------------------------------------------------------------------------

const std::vector<int>& DistributedOptimizer::virtual_ranks() const noexcept {
  static const std::vector<int> none;
  return state_->share == nullptr ? none : state_->share->mine();
}

int DistributedOptimizer::virtual_rank_count() const noexcept {
  return state_->share == nullptr ? 0 : state_->share->ranks().count();
}

DistributedOptimizer::MicroBatch DistributedOptimizer::micro_batch(int virtual_rank) {
  state_->with_share().begin_leaf(virtual_rank);
  return MicroBatch(stream_seed(state_->options.seed, virtual_rank, state_->steps));
}

void DistributedOptimizer::average_with_each_step(const std::vector<torch::Tensor>& tensors) {
  state_->with_share().averages().add(tensors);
}

torch::Tensor DistributedOptimizer::sum_over_virtual_ranks(const torch::Tensor& rows) {
  return train::sum_leaves(state_->with_share().pipeline().communicator(), *state_->share, rows);
}

std::uint64_t DistributedOptimizer::steps() const noexcept { return state_->steps; }
void DistributedOptimizer::set_steps(std::uint64_t steps) noexcept { state_->steps = steps; }

DistributedOptimizer::SkipSynchronize::SkipSynchronize(DistributedOptimizer& owner)
    : owner_(owner) {
  owner_.state_->skips = true;
}
DistributedOptimizer::SkipSynchronize::~SkipSynchronize() { owner_.state_->skips = false; }

std::size_t optimizer_state_bytes(const torch::optim::Optimizer& optimizer) {
  namespace optim = torch::optim;
  std::size_t bytes = 0;
  const auto add = [&](const torch::Tensor& tensor) {
    if (tensor.defined()) bytes += tensor.nbytes();
  };
  for (const auto& [key, kept] : optimizer.state()) {
    if (const auto* sgd = dynamic_cast<const optim::SGDParamState*>(kept.get())) {
      add(sgd->momentum_buffer());
    } else if (const auto* adam = dynamic_cast<const optim::AdamParamState*>(kept.get())) {
      for (const auto& part : {adam->exp_avg(), adam->exp_avg_sq(), adam->max_exp_avg_sq()})
        add(part);
    } else if (const auto* adamw = dynamic_cast<const optim::AdamWParamState*>(kept.get())) {
      for (const auto& part : {adamw->exp_avg(), adamw->exp_avg_sq(), adamw->max_exp_avg_sq()})
        add(part);
    } else if (const auto* rms = dynamic_cast<const optim::RMSpropParamState*>(kept.get())) {
      for (const auto& part : {rms->square_avg(), rms->momentum_buffer(), rms->grad_avg()})
        add(part);
    } else if (const auto* adagrad = dynamic_cast<const optim::AdagradParamState*>(kept.get())) {
      add(adagrad->sum());
    }
  }
  return bytes;
}

}  // namespace kolo
