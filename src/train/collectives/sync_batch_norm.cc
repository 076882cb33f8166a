// Moments of several groups of samples are combined by Chan, Golub and LeVeque's formula ("Updating
// formulae and a pairwise algorithm for computing sample variances", 1979): with count n, mean m
// and squared deviation d of each group,
//   mean = sum(n·m) / N        deviation = sum(d + n·(m - mean)²)
// which does not lose digits where the mean is large, as E(x²) - E(x)² would. Members are combined
// in the same order everywhere, so the bits are the same everywhere.
//
// Backward (Ioffe and Szegedy, 2015, section 3), with x^ = (x - mean)/sigma and N samples of all
// members:  dx = weight/sigma · (dy - sum(dy)/N - x^·sum(dy·x^)/N).
#include "kolo/torch/sync_batch_norm.h"

#include "base/errors.h"
#include "kolo/context.h"
#include "train/micro_batch.h"

namespace kolo {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Features as rows: features x (samples · places).
torch::Tensor by_feature(const torch::Tensor& input) {
  return input.transpose(0, 1).reshape({input.size(1), -1});
}

/// One value a feature, shaped so that it meets the features of `input`.
torch::Tensor along_features(const torch::Tensor& values, const torch::Tensor& input) {
  std::vector<int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = input.size(1);
  return values.view(shape);
}

struct Moments {
  double count = 0;
  torch::Tensor mean, variance;  // biased
};

Moments moments_of_all(const torch::Tensor& input, const CollectiveOptions& options) {
  const int64_t features = input.size(1);
  const torch::Tensor rows = by_feature(input).to(torch::kFloat64);
  const auto count = static_cast<double>(rows.size(1));
  torch::Tensor mean = count > 0 ? rows.mean(1) : torch::zeros({features}, rows.options());
  torch::Tensor deviation = (rows - mean.unsqueeze(1)).square().sum(1);
  torch::Tensor mine =
      torch::cat({torch::full({1}, count, rows.options()), mean, deviation}).unsqueeze(0);
  const torch::Tensor all = synchronize(allgather_async(mine, options));

  Moments moments;
  const torch::Tensor counts = all.select(1, 0);
  moments.count = counts.sum().item<double>();
  if (moments.count == 0)
    throw_error(ErrorCode::invalid_argument,
                "SyncBatchNorm: no rank has any samples in this batch");
  const torch::Tensor weights = counts.unsqueeze(1), means = all.narrow(1, 1, features);
  moments.mean = (weights * means).sum(0) / moments.count;
  moments.variance =
      (all.narrow(1, 1 + features, features) + weights * (means - moments.mean).square()).sum(0) /
      moments.count;
  return moments;
}

struct Normalize : torch::autograd::Function<Normalize> {
  static torch::Tensor forward(AutogradContext* context, torch::Tensor input,
                               c10::optional<torch::Tensor> weight,
                               c10::optional<torch::Tensor> bias, const Moments* moments,
                               double eps, const CollectiveOptions* options) {
    const torch::Tensor mean = moments->mean.to(input.scalar_type());
    const torch::Tensor scale = (moments->variance + eps).rsqrt().to(input.scalar_type());
    torch::Tensor normal = (input - along_features(mean, input)) * along_features(scale, input);
    context->save_for_backward({normal, scale, weight ? *weight : scale});
    context->saved_data["affine"] = weight.has_value();
    context->saved_data["count"] = moments->count;
    context->saved_data["set"] = static_cast<int64_t>(options->process_set);
    context->saved_data["engine"] = reinterpret_cast<int64_t>(options->engine);
    if (weight) normal = normal * along_features(*weight, input) + along_features(*bias, input);
    return normal;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor &normal = saved[0], &scale = saved[1], &weight = saved[2];
    const bool affine = context->saved_data["affine"].toBool();
    const torch::Tensor& gradient = gradients[0];
    const torch::Tensor sum = by_feature(gradient).sum(1);
    const torch::Tensor product = by_feature(gradient * normal).sum(1);
    CollectiveOptions options;
    options.op = ReduceOp::sum;
    options.process_set = static_cast<ProcessSetId>(context->saved_data["set"].toInt());
    options.engine = reinterpret_cast<Engine*>(context->saved_data["engine"].toInt());
    const torch::Tensor all =
        synchronize(allreduce_async(torch::stack({sum, product}).to(torch::kFloat64), options)) /
        context->saved_data["count"].toDouble();
    const torch::Tensor means = all.to(gradient.scalar_type());
    torch::Tensor input_gradient =
        gradient - along_features(means[0], gradient) - normal * along_features(means[1], gradient);
    input_gradient = input_gradient * along_features(affine ? weight * scale : scale, gradient);
    // Gradients of weight and bias stay this rank's own: DistributedOptimizer averages them.
    return {input_gradient,
            affine ? product : torch::Tensor(),
            affine ? sum : torch::Tensor(),
            torch::Tensor(),
            torch::Tensor(),
            torch::Tensor()};
  }
};

}  // namespace

SyncBatchNormImpl::SyncBatchNormImpl(const SyncBatchNormOptions& the_options)
    : options(the_options) {
  const int64_t features = options.num_features();
  if (features < 1)
    throw_error(ErrorCode::invalid_argument,
                "SyncBatchNorm: the number of features is {}, but must be positive", features);
  if (options.affine()) {
    weight = register_parameter("weight", torch::ones({features}));
    bias = register_parameter("bias", torch::zeros({features}));
  }
  if (options.track_running_stats()) {
    running_mean = register_buffer("running_mean", torch::zeros({features}));
    running_var = register_buffer("running_var", torch::ones({features}));
    num_batches_tracked = register_buffer("num_batches_tracked", torch::tensor(0, torch::kLong));
  }
}

void SyncBatchNormImpl::reset_parameters() {
  torch::NoGradGuard no_grad;
  if (weight.defined()) weight.fill_(1);
  if (bias.defined()) bias.zero_();
  if (!running_mean.defined()) return;
  running_mean.zero_();
  running_var.fill_(1);
  num_batches_tracked.zero_();
}

torch::Tensor SyncBatchNormImpl::forward(const torch::Tensor& input) {
  if (input.dim() < 2 || input.size(1) != options.num_features())
    throw_error(
        ErrorCode::invalid_argument,
        "SyncBatchNorm: expected a tensor of samples x {} features x …, but it has {} dimensions",
        options.num_features(), input.dim());
  if (is_training() && train::is_in_micro_batch())
    throw_error(ErrorCode::unsupported,
                "SyncBatchNorm: with virtual ranks the samples of a step are never all there at "
                "once; use BatchNorm and average_with_each_step(net->buffers())");
  const bool in_job = options.engine() != nullptr || is_initialized();
  CollectiveOptions how;
  how.process_set = options.process_set();
  if (in_job) how.engine = options.engine() != nullptr ? options.engine() : &engine();
  const bool uses_batch = is_training() || !running_mean.defined();
  const bool together = in_job && is_training() && how.engine->is_member(how.process_set) &&
                        how.engine->size(how.process_set) > 1;

  double factor = 0;
  if (is_training() && running_mean.defined()) {
    num_batches_tracked += 1;
    factor = options.momentum() ? *options.momentum() : 1.0 / num_batches_tracked.item<double>();
  }
  if (!together)
    return torch::batch_norm(input, weight, bias, running_mean, running_var, uses_batch, factor,
                             options.eps(), at::globalContext().userEnabledCuDNN());

  const Moments moments = moments_of_all(input.detach(), how);
  if (running_mean.defined()) {
    torch::NoGradGuard no_grad;
    const double unbias = moments.count > 1 ? moments.count / (moments.count - 1) : 1.0;
    running_mean.lerp_(moments.mean.to(running_mean.options()), factor);
    running_var.lerp_((moments.variance * unbias).to(running_var.options()), factor);
  }
  using MaybeTensor = c10::optional<torch::Tensor>;
  return Normalize::apply(input, weight.defined() ? MaybeTensor(weight) : MaybeTensor(),
                          bias.defined() ? MaybeTensor(bias) : MaybeTensor(), &moments,
                          options.eps(), &how);
}

}  // namespace kolo
