// Backward passes submit operations in the order in which autograd reaches them, which is the same
// on every rank that built the same graph; where it is not, give names.
#include "train/collectives/autograd.h"

#include "base/errors.h"
#include "train/collectives/pending.h"

namespace kolo::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Options travel from forward to backward inside the context, which holds libtorch's values only.
void remember(AutogradContext* context, const CollectiveOptions& options) {
  auto& saved = context->saved_data;
  saved["name"] = options.name.empty() ? options.name : options.name + ".grad";
  saved["op"] = static_cast<int64_t>(options.op);
  saved["prescale"] = options.prescale_factor;
  saved["postscale"] = options.postscale_factor;
  saved["set"] = static_cast<int64_t>(options.process_set);
  saved["engine"] = reinterpret_cast<int64_t>(&engine_of(options));
}

CollectiveOptions recall(AutogradContext* context) {
  auto& saved = context->saved_data;
  CollectiveOptions options;
  options.name = saved["name"].toStringRef();
  options.op = static_cast<ReduceOp>(saved["op"].toInt());
  options.prescale_factor = saved["prescale"].toDouble();
  options.postscale_factor = saved["postscale"].toDouble();
  options.process_set = static_cast<ProcessSetId>(saved["set"].toInt());
  options.engine = reinterpret_cast<Engine*>(saved["engine"].toInt());
  return options;
}

/// As recall(), for a plain average.
CollectiveOptions recall_average(AutogradContext* context) {
  CollectiveOptions options = recall(context);
  options.op = ReduceOp::average;
  options.prescale_factor = options.postscale_factor = 1.0;
  return options;
}

void check_differentiable(const CollectiveOptions& options, const char* what) {
  if (options.op != ReduceOp::sum && options.op != ReduceOp::average)
    throw_error(ErrorCode::unsupported,
                "{}: {} has no gradient; detach the tensor, or use sum or average", what,
                to_string(options.op));
}

struct Allreduce : torch::autograd::Function<Allreduce> {
  static variable_list forward(AutogradContext* context, at::TensorList tensors,
                               const CollectiveOptions* options) {
    remember(context, *options);
    return tensors.size() == 1
               ? variable_list{synchronize(allreduce_async(tensors.front(), *options))}
               : synchronize_group(grouped_allreduce_async(tensors.vec(), *options));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const CollectiveOptions options = recall(context);
    variable_list results = gradients.size() == 1
                                ? variable_list{synchronize(allreduce_async(gradients[0], options))}
                                : synchronize_group(grouped_allreduce_async(gradients, options));
    results.emplace_back();
    return results;
  }
};

struct Allgather : torch::autograd::Function<Allgather> {
  static torch::Tensor forward(AutogradContext* context, torch::Tensor tensor,
                               const CollectiveOptions* options) {
    remember(context, *options);
    Engine& engine = engine_of(*options);
    const TensorHandle handle = allgather_async(tensor, *options);
    torch::Tensor result = synchronize(handle);
    // The handle's counts are elements; rows before mine:
    const auto counts = received_splits(handle);
    const int64_t row = std::max<int64_t>(1, tensor.numel() / std::max<int64_t>(1, tensor.size(0)));
    int64_t before = 0;
    for (int member = 0; member < engine.rank(options->process_set); ++member)
      before += counts[static_cast<std::size_t>(member)] / row;
    context->saved_data["first"] = before;
    context->saved_data["rows"] = tensor.size(0);
    return result;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    torch::Tensor average = synchronize(allreduce_async(gradients[0], recall_average(context)));
    return {average.narrow(0, context->saved_data["first"].toInt(),
                           context->saved_data["rows"].toInt()),
            torch::Tensor()};
  }
};

struct Broadcast : torch::autograd::Function<Broadcast> {
  static torch::Tensor forward(AutogradContext* context, torch::Tensor tensor, int64_t root,
                               const CollectiveOptions* options) {
    remember(context, *options);
    context->saved_data["root"] = root;
    return synchronize(broadcast_async(tensor, static_cast<int>(root), *options));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const CollectiveOptions options = recall_average(context);
    torch::Tensor average = synchronize(allreduce_async(gradients[0], options));
    const bool is_root = options.engine->rank() == context->saved_data["root"].toInt();
    return {is_root ? average : torch::zeros_like(average), torch::Tensor(), torch::Tensor()};
  }
};

struct Alltoall : torch::autograd::Function<Alltoall> {
  static torch::Tensor forward(AutogradContext* context, torch::Tensor tensor,
                               const std::vector<int64_t>* splits,
                               const CollectiveOptions* options) {
    remember(context, *options);
    const TensorHandle handle = alltoall_async(tensor, *splits, *options);
    torch::Tensor result = synchronize(handle);
    context->saved_data["splits"] = received_splits(handle);
    return result;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {synchronize(alltoall_async(gradients[0], context->saved_data["splits"].toIntVector(),
                                       recall(context))),
            torch::Tensor(), torch::Tensor()};
  }
};

struct Reducescatter : torch::autograd::Function<Reducescatter> {
  static torch::Tensor forward(AutogradContext* context, torch::Tensor tensor,
                               const CollectiveOptions* options) {
    remember(context, *options);
    return synchronize(reducescatter_async(tensor, *options));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const CollectiveOptions options = recall(context);
    double factor = options.prescale_factor * options.postscale_factor;
    if (options.op == ReduceOp::sum)
      factor *= static_cast<double>(options.engine->size(options.process_set));
    return {synchronize(allgather_async(gradients[0] * factor, options)), torch::Tensor()};
  }
};

}  // namespace

torch::Tensor differentiable_allreduce(const torch::Tensor& tensor,
                                       const CollectiveOptions& options) {
  check_differentiable(options, "allreduce");
  return Allreduce::apply(at::TensorList(tensor), &options)[0];
}
std::vector<torch::Tensor> differentiable_grouped_allreduce(
    const std::vector<torch::Tensor>& tensors, const CollectiveOptions& options) {
  check_differentiable(options, "grouped_allreduce");
  return Allreduce::apply(at::TensorList(tensors), &options);
}
torch::Tensor differentiable_allgather(const torch::Tensor& tensor,
                                       const CollectiveOptions& options) {
  return Allgather::apply(tensor, &options);
}
torch::Tensor differentiable_broadcast(const torch::Tensor& tensor, int root_rank,
                                       const CollectiveOptions& options) {
  return Broadcast::apply(tensor, static_cast<int64_t>(root_rank), &options);
}
torch::Tensor differentiable_alltoall(const torch::Tensor& tensor,
                                      const std::vector<int64_t>& splits,
                                      const CollectiveOptions& options) {
  return Alltoall::apply(tensor, &splits, &options);
}
torch::Tensor differentiable_reducescatter(const torch::Tensor& tensor,
                                           const CollectiveOptions& options) {
  check_differentiable(options, "reducescatter");
  return Reducescatter::apply(tensor, &options);
}

}  // namespace kolo::train
