// The way of a gradient: libtorch calls a hook after it has accumulated the gradient of a parameter
// (on_gradient). The gradient is copied into its place in a bucket, and the parameter's grad
// becomes a view of that place, so that later passes add to the bucket itself. When all members of
// a bucket are there the pipeline may reduce it. finish() collects what backward did not reach, as
// zeros, waits for the pipeline, and hands the results back.
//
// In the first step there is no plan yet: hooks only note the order of the gradients, the ranks
// agree on buckets at its end (gradient_agreement.cc), and everything is reduced in finish().
//
// A parameter on another device is *staged*: its place in the bucket is a copy in main memory.
// Sparse gradients are in no bucket; they are gathered at the end of the step, when it is known who
// has some.
#include "train/gradient_exchange.h"

#include <torch/torch.h>

#include <cstring>
#include <utility>

#include "base/errors.h"
#include "base/files.h"

namespace kolo::train {
namespace {

class Hook final : public torch::autograd::FunctionPostHook {
 public:
  explicit Hook(std::function<void()> action) : action_(std::move(action)) {}
  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& outputs,
      const torch::autograd::variable_list& /*inputs*/) override {
    action_();
    return outputs;
  }

 private:
  std::function<void()> action_;
};

double squared_norm(const torch::Tensor& flat) { return torch::dot(flat, flat).item<double>(); }

}  // namespace

GradientExchange::GradientExchange(Engine& engine, ProcessSetId set,
                                   std::vector<torch::Tensor> parameters,
                                   std::vector<ParameterInfo> infos,
                                   std::unique_ptr<GradientReducer> reducer,
                                   ExchangeOptions options)
    : parameters_(std::move(parameters)),
      infos_(std::move(infos)),
      reducer_(std::move(reducer)),
      options_(std::move(options)),
      pipeline_(std::make_unique<runtime::StepPipeline>(engine, set, *this)),
      states_(parameters_.size()),
      used_(parameters_.size()) {
  is_tuning_ = options_.autotune;
  if (options_.share != nullptr) {
    averages_ = std::make_unique<LeafAverages>(*options_.share);
    refuses_zeros_ = true;
  }
  if (!options_.uses_hooks) return;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].requires_grad()) continue;
    // Parameters hold their accumulators weakly: without us it would go with the graph.
    states_[i].keeps_accumulator = torch::autograd::impl::grad_accumulator(parameters_[i]);
    states_[i].hook = states_[i].keeps_accumulator->add_post_hook(
        std::make_unique<Hook>([this, i] { on_gradient(i); }));
  }
}

GradientExchange::~GradientExchange() {
  for (Parameter& state : states_)
    if (state.keeps_accumulator) state.keeps_accumulator->del_post_hook(state.hook);
  pipeline_.reset();
}

// --- backward ------------------------------------------------------------------------------------

void GradientExchange::on_gradient(std::size_t index) {
  MutexLock lock(mutex_);
  Parameter& state = states_[index];
  const bool folds = options_.share != nullptr;
  if (folds && !leaf_)
    throw_error(ErrorCode::failed_precondition,
                "DistributedOptimizer: with virtual ranks backward() is called inside a "
                "micro_batch() of each of virtual_ranks()");
  if (++state.passes > options_.passes)
    throw_error(ErrorCode::failed_precondition,
                "DistributedOptimizer: '{}' has had {} backward passes since the last step(), but "
                "backward_passes_per_step is {}; call step() earlier, or raise it",
                infos_[index].name, state.passes, options_.passes);
  ++passes_seen_;
  const bool is_complete = state.passes == options_.passes;
  if (folds && is_complete) fold(index);
  if (plan_.fingerprint == 0) {
    if (state.passes == 1 && leaf_.value_or(0) == 0)
      order_.push_back(static_cast<std::uint32_t>(index));
    return;
  }
  if (infos_[index].is_sparse) return;
  if (!folds) collect(index);
  if (!is_complete || !is_last_leaf() || --missing_[state.bucket] > 0) {
    lock.unlock();
    return pipeline_->progress();
  }
  if (measures_norms_) local_squared_ += squared_norm(buckets_[state.bucket].flat);
  lock.unlock();
  pipeline_->mark_ready(state.bucket);
}

/// Notes a copy between a gradient and its bucket, from construction to the end of the scope.
class GradientExchange::CopyWatch {
 public:
  CopyWatch(GradientExchange& exchange, std::size_t index)
      : exchange_(exchange), index_(index), is_on_(exchange.pipeline_->is_recorded()) {
    if (is_on_) begin_ = std::chrono::steady_clock::now();
  }
  ~CopyWatch() {
    const Parameter& state = exchange_.states_[index_];
    if (is_on_)
      exchange_.pipeline_->note_copy(exchange_.name_of(state.bucket), begin_, state.view.nbytes());
  }
  CopyWatch(const CopyWatch&) = delete;
  CopyWatch& operator=(const CopyWatch&) = delete;

 private:
  GradientExchange& exchange_;
  const std::size_t index_;
  const bool is_on_;
  std::chrono::steady_clock::time_point begin_;
};

void GradientExchange::collect(std::size_t index) {
  torch::NoGradGuard no_grad;
  Parameter& state = states_[index];
  torch::Tensor& grad = parameters_[index].mutable_grad();
  if (brings_zeros_ || !grad.defined()) {
    if (!brings_zeros_) used_[index] = 0;
    state.view.zero_();
    return;
  }
  used_[index] = 1;
  if (!grad.is_sparse() && grad.data_ptr() == state.view.data_ptr()) return;
  const CopyWatch watch(*this, index);
  if (grad.is_sparse()) {
    state.view.copy_(grad.to_dense());
  } else if (!state.is_staged && grad.strides() == state.view.strides() &&
             grad.scalar_type() == state.view.scalar_type()) {
    std::memcpy(state.view.data_ptr(), grad.data_ptr(), state.view.nbytes());
  } else {
    state.view.copy_(grad);
  }
  if (!state.is_staged) grad = state.view;
}

// --- a step --------------------------------------------------------------------------------------

void GradientExchange::finish() {
  outside_of_backward();
  brings_zeros_ = false;
  if (options_.share != nullptr) {
    end_leaves();
  } else if (plan_.fingerprint != 0) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      // Places in buckets that are complete belong to the reduction already.
      if (infos_[i].is_sparse)
        used_[i] = parameters_[i].grad().defined();
      else if (states_[i].passes < options_.passes)
        collect(i);
    }
    if (measures_norms_)
      for (std::size_t b = 0; b < buckets_.size(); ++b)
        if (missing_[b] > 0) local_squared_ += squared_norm(buckets_[b].flat);
  }
  const auto reset = [&]() KOLO_REQUIRES(mutex_) {
    for (Parameter& state : states_) state.passes = 0;
    for (std::size_t b = 0; b < buckets_.size(); ++b) missing_[b] = plan_.buckets[b].members.size();
    passes_seen_ = 0;
    leaf_.reset();
  };
  try {
    pipeline_->finish();
  } catch (...) {
    reset();
    if (averages_) averages_->abandon();
    throw;
  }
  if (averages_) averages_->accept();
  if (is_tuning_) tune();
  for (std::size_t i = 0; i < parameters_.size(); ++i) hand_back(i);
  reset();
  if (!measures_norms_) return;
  norms_.local_squared = std::exchange(local_squared_, 0.0);
  norms_.reduced_squared = 0;
  for (GradientBucket& bucket : buckets_) norms_.reduced_squared += squared_norm(bucket.flat);
}

/// What the first rank wished at the end of this step holds for the next one.
void GradientExchange::tune() {
  const Wish wish = std::exchange(wish_, {});
  if (wish.is_new) apply(wish.settings);
  if (wish.is_last) is_tuning_ = false;
  if (!is_tuning_ || pipeline_->communicator().rank() != 0 || brings_zeros_) return;
  const auto now = std::chrono::steady_clock::now();
  const auto since = std::exchange(last_step_, now);
  if (!tuner_) {  // the first step had no beginning
    StepSettings given;
    given.bucket_bytes = options_.rules.bucket_bytes;
    given.one_trip_bytes = pipeline_->communicator().one_trip_bytes();
    given.uses_helper = !pipeline_->can_choose_helper();
    tuner_.emplace(given, pipeline_->can_choose_helper());
    return;
  }
  const auto next = tuner_->record(std::chrono::duration<double>(now - since).count());
  if (next) wish_.settings = *next;
  wish_.is_new = next.has_value();
  wish_.is_last = tuner_->is_done();
  if (tuner_->is_done() && !options_.autotune_log.empty())
    write_output_file(options_.autotune_log, tuner_->csv());
}

void GradientExchange::apply(const StepSettings& settings) {
  if (settings.bucket_bytes != options_.rules.bucket_bytes)
    change_bucket_size(settings.bucket_bytes);
  pipeline_->use_helper(settings.uses_helper);
  pipeline_->communicator().set_one_trip_bytes(settings.one_trip_bytes);
}

void GradientExchange::hand_back(std::size_t index) {
  if (infos_[index].is_sparse || used_[index] == 0 || !options_.uses_hooks) return;
  torch::NoGradGuard no_grad;
  torch::Tensor& grad = parameters_[index].mutable_grad();
  Parameter& state = states_[index];
  if (!state.is_staged) {
    if (!grad.defined() || grad.data_ptr() != state.view.data_ptr()) grad = state.view;
    return;
  }
  if (!grad.defined() || grad.is_sparse()) grad = torch::empty_like(parameters_[index]);
  const CopyWatch watch(*this, index);
  grad.copy_(state.view);
}

void GradientExchange::run(Communicator& communicator, std::size_t item) {
  if (item < buckets_.size()) return reducer_->reduce(communicator, item, buckets_[item]);
  outside_of_backward();  // nobody marks the last item as ready, so that finish() runs it
  end_step(communicator);
}

/// Who has used what, and the gradients that are gathered.
void GradientExchange::end_step(Communicator& communicator) {
  if (brings_zeros_) std::fill(used_.begin(), used_.end(), std::uint8_t{0});
  communicator.allreduce(used_.data(), used_.data(), used_.size(), DataType::uint8, ReduceOp::max);
  if (averages_) averages_->reduce(communicator);
  if (is_tuning_) communicator.broadcast(&wish_, sizeof wish_, DataType::uint8, 0);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (infos_[i].is_sparse && used_[i] != 0) gather_sparse(communicator, i);
}

/// Every rank's entries, summed (or averaged) where they name the same row. A rank without a
/// gradient brings none.
void GradientExchange::gather_sparse(Communicator& communicator, std::size_t index) {
  torch::NoGradGuard no_grad;
  const torch::Tensor& parameter = parameters_[index];
  torch::Tensor& grad = parameters_[index].mutable_grad();
  torch::Tensor mine;
  if (!brings_zeros_ && grad.defined()) mine = grad.is_sparse() ? grad : grad.to_sparse(1);
  if (mine.defined()) mine = mine.coalesce();
  const std::int64_t dims = mine.defined() ? mine.sparse_dim() : 1;
  torch::Tensor rows =
      mine.defined() ? mine._indices().t().contiguous() : torch::empty({0, dims}, torch::kInt64);
  Shape value_shape(parameter.sizes().begin() + dims, parameter.sizes().end());
  value_shape.insert(value_shape.begin(), rows.size(0));
  torch::Tensor values =
      mine.defined() ? mine._values().contiguous() : torch::empty(value_shape, parameter.options());
  const auto gather = [&](const torch::Tensor& input) {
    torch::Tensor all;
    const std::int64_t row = input.size(0) == 0 && input.dim() > 1
                                 ? c10::multiply_integers(input.sizes().slice(1))
                                 : (input.size(0) == 0 ? 1 : input.numel() / input.size(0));
    communicator.allgather(
        input.data_ptr(), static_cast<std::size_t>(input.size(0)), static_cast<std::size_t>(row),
        input.scalar_type() == torch::kInt64 ? DataType::int64 : infos_[index].type,
        [&](std::span<const std::size_t> counts) {
          std::int64_t total = 0;
          for (const std::size_t count : counts) total += static_cast<std::int64_t>(count);
          Shape shape = input.sizes().vec();
          shape[0] = total / std::max<std::int64_t>(row, 1);
          all = torch::empty(shape, input.options());
          return all.data_ptr();
        });
    return all;
  };
  const torch::Tensor all_rows = gather(rows);
  torch::Tensor all_values = gather(values);
  if (options_.op == ReduceOp::average) all_values.div_(communicator.size());
  if (brings_zeros_) return;
  grad =
      torch::sparse_coo_tensor(all_rows.t().contiguous(), all_values, parameter.sizes()).coalesce();
}

runtime::StepPlan GradientExchange::step_plan() const {
  runtime::StepPlan plan{plan_.fingerprint};
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    plan.items.push_back(
        {name_of(b), buckets_[b].flat.nbytes(), reducer_->as_allreduce(buckets_[b])});
  plan.items.push_back({"end of step", used_.size()});
  return plan;
}

std::string GradientExchange::name_of(std::size_t bucket) const {
  return fmt::format("bucket {} ({} …)", bucket,
                     infos_[plan_.buckets[bucket].members.front().parameter].name);
}

bool GradientExchange::bring_zeros() {
  outside_of_backward();
  brings_zeros_ = true;
  if (is_tuning_) tune();  // what was wished at the end of the step before
  torch::NoGradGuard no_grad;
  for (GradientBucket& bucket : buckets_) bucket.flat.zero_();
  return !refuses_zeros_;
}

}  // namespace kolo::train
