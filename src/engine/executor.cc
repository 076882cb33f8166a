#include "engine/executor.h"

#include "base/errors.h"

namespace kolo::runtime {
namespace {

std::size_t row_size_of(const Shape& shape) {
  return element_count(Shape(shape.begin() + (shape.empty() ? 0 : 1), shape.end()));
}
std::size_t rows_of(const Shape& shape) {
  return shape.empty() ? 1 : static_cast<std::size_t>(shape[0]);
}

}  // namespace

void Executor::reduce(const std::vector<Request>& requests,
                      const std::vector<std::shared_ptr<Operation>>& operations,
                      const CopyNote& note) {
  std::vector<TensorRef> tensors;
  std::vector<std::vector<std::byte>> zeros;  // what a rank that has joined brings
  for (std::size_t i = 0; i < requests.size(); ++i) {
    for (std::size_t t = 0; t < requests[i].tensors.size(); ++t) {
      const auto& [type, shape] = requests[i].tensors[t];
      TensorRef tensor;
      tensor.count = element_count(shape);
      tensor.type = type;
      if (operations[i] != nullptr) {
        tensor.input = operations[i]->tensors[t].input;
        tensor.output = operations[i]->tensors[t].output;
      } else {
        zeros.emplace_back(tensor.count * size_of(type));
        tensor.input = tensor.output = zeros.back().data();
      }
      tensors.push_back(tensor);
    }
  }
  const Request& first = requests[0];
  if (tensors.size() == 1)
    communicator_.allreduce(tensors[0].input, tensors[0].output, tensors[0].count, tensors[0].type,
                            first.op, first.scaling);
  else
    communicator_.grouped_allreduce(tensors, first.op, first.scaling, note);
}

void Executor::execute(const std::vector<Request>& requests,
                       const std::vector<std::shared_ptr<Operation>>& operations,
                       const CopyNote& note) {
  const Request& request = requests[0];
  switch (request.kind) {
    case OpKind::allreduce:
    case OpKind::grouped_allreduce: return reduce(requests, operations, note);
    case OpKind::barrier: return communicator_.barrier();
    default: break;
  }
  // Its own shape: that of the request may be another rank's, with another first dimension.
  KOLO_CHECK(operations[0] != nullptr && !operations[0]->request.tensors.empty());
  Operation& own = *operations[0];
  const auto& [type, shape] = own.request.tensors[0];
  const TensorArg& tensor = own.tensors[0];
  switch (request.kind) {
    case OpKind::reducescatter:
      communicator_.reducescatter(tensor.input, tensor.output, rows_of(shape), row_size_of(shape),
                                  type, request.op, request.scaling);
      break;
    case OpKind::allgather:
      own.counts = communicator_.allgather(tensor.input, rows_of(shape), row_size_of(shape), type,
                                           own.allocate);
      break;
    case OpKind::broadcast:
      communicator_.broadcast(tensor.output, element_count(shape), type, request.root);
      break;
    case OpKind::alltoall:
      own.counts = communicator_.alltoall(tensor.input, rows_of(shape), row_size_of(shape), type,
                                          own.splits, own.allocate);
      break;
    default: throw_error(ErrorCode::internal, "engine: unknown operation");
  }
}

}  // namespace kolo::runtime
