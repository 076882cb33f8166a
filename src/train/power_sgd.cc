// PowerSGD: Vogels, Karimireddy, Jaggi, "PowerSGD: practical low-rank gradient compression for
// distributed optimization", 2019, algorithms 1 and 2.
//
// Vocabulary: a gradient is a matrix M (n × m), plus the *error* that was left out last time; it is
// approximated by P Qᵀ with r columns. One step of a power iteration, started from the Q of the
// step before:
//   P ← M Q, averaged;  P ← orthogonal columns;  Q ← Mᵀ P, averaged;  M' = P Qᵀ;  error = M − M'
// Tensors that would not become smaller (vectors above all) travel as they are, along with P.
//
// Cost per matrix: 4 n m r multiplications and (n + m) r numbers instead of n m.
#include <torch/torch.h>

#include <deque>

#include "base/errors.h"
#include "train/dtype.h"
#include "train/gradient_reducer.h"

namespace kolo::train {
namespace {

/// Modified Gram and Schmidt over the columns. A column that vanishes becomes zero.
void orthogonalize(torch::Tensor& matrix) {
  for (std::int64_t c = 0; c < matrix.size(1); ++c) {
    torch::Tensor column = matrix.select(1, c);
    const torch::Tensor norm = column.norm();
    column.div_(torch::where(norm > 1e-20, norm, torch::full_like(norm, INFINITY)));
    if (c + 1 == matrix.size(1)) break;
    torch::Tensor rest = matrix.slice(1, c + 1);
    rest.sub_(torch::outer(column, torch::mv(rest.t(), column)));
  }
}

class PowerSgdReducer final : public GradientReducer {
 public:
  PowerSgdReducer(int rank, ReduceOp op) : rank_(rank), op_(op) {
    if (rank < 1)
      throw_error(ErrorCode::invalid_argument, "PowerSGD: rank {} is not positive", rank);
  }

  void reduce(Communicator& communicator, std::size_t index, GradientBucket& bucket) override {
    torch::NoGradGuard no_grad;
    prepare(communicator, index, bucket);
    Kept& kept = kept_[index];
    bucket.flat.add_(kept.error);
    for (std::size_t i = 0; i < kept.matrices.size(); ++i) {
      Matrix& matrix = kept.matrices[i];
      torch::mm_out(matrix.p, matrix.of(bucket), matrix.q);
    }
    for (Whole& whole : kept.wholes) whole.travelling.copy_(bucket.views[whole.member].flatten());
    average(communicator, kept.first);
    for (Matrix& matrix : kept.matrices) {
      orthogonalize(matrix.p);
      torch::mm_out(matrix.q, matrix.of(bucket).t(), matrix.p);
    }
    average(communicator, kept.second);

    kept.error.copy_(bucket.flat);
    for (Matrix& matrix : kept.matrices) {
      torch::Tensor approximation = matrix.of(bucket);
      torch::mm_out(approximation, matrix.p, matrix.q.t());
    }
    for (Whole& whole : kept.wholes)
      bucket.views[whole.member].copy_(whole.travelling.view_as(bucket.views[whole.member]));
    kept.error.sub_(bucket.flat);
    for (Whole& whole : kept.wholes) whole.error.zero_();  // nothing of these was left out
    if (op_ == ReduceOp::sum) bucket.flat.mul_(communicator.size());
  }
  void forget() override { kept_.clear(); }

  void prepare(Communicator& communicator, std::size_t index, GradientBucket& bucket) override {
    if (kept_.size() <= index) kept_.resize(index + 1);
    if (!kept_[index].error.defined()) make(communicator, index, bucket, kept_[index]);
  }
  [[nodiscard]] NamedTensors kept(std::size_t index, const GradientBucket& bucket,
                                  std::size_t member) const override {
    if (index >= kept_.size() || !kept_[index].error.defined()) return {};
    NamedTensors all{{kKeptError, part_of(kept_[index].error, bucket, member)}};
    for (const Matrix& matrix : kept_[index].matrices)
      if (matrix.member == member) all["q"] = matrix.q;
    return all;
  }

 private:
  struct Matrix {
    std::size_t member;
    std::int64_t rows, columns;
    torch::Tensor p, q;
    [[nodiscard]] torch::Tensor of(GradientBucket& bucket) const {
      return bucket.flat
          .narrow(0, static_cast<std::int64_t>(bucket.plan->members[member].offset), rows * columns)
          .view({rows, columns});
    }
  };
  struct Whole {
    std::size_t member;
    torch::Tensor travelling, error;
  };
  /// What is reduced together.
  struct Message {
    SharedBytes memory;
    torch::Tensor flat;
  };
  struct Kept {
    torch::Tensor error;
    std::vector<Matrix> matrices;
    std::vector<Whole> wholes;
    Message first, second;  // P and the wholes; Q
  };

  void make(Communicator& communicator, std::size_t index, GradientBucket& bucket, Kept& kept) {
    kept.error = torch::zeros_like(bucket.flat);
    std::int64_t first = 0, second = 0;
    for (std::size_t i = 0; i < bucket.views.size(); ++i) {
      const torch::Tensor& view = bucket.views[i];
      const std::int64_t rows = view.dim() >= 2 ? view.size(0) : 1;
      const std::int64_t columns = rows == 0 ? 0 : view.numel() / rows;
      const std::int64_t rank = std::min<std::int64_t>({rank_, rows, columns});
      if (view.dim() >= 2 && view.is_contiguous() && (rows + columns) * rank < rows * columns) {
        kept.matrices.push_back({i, rows, columns, {}, {}});
        first += rows * rank;
        second += columns * rank;
      } else {
        kept.wholes.push_back({i, {}, {}});
        first += view.numel();
      }
    }
    const auto type = bucket.flat.scalar_type();
    const auto make_message = [&](Message& message, std::int64_t count) {
      const auto bytes = static_cast<std::size_t>(count) * bucket.flat.element_size();
      message.memory = allocate(communicator, bytes);
      message.flat = tensor_over(message.memory, static_cast<std::size_t>(count), type);
    };
    make_message(kept.first, first);
    make_message(kept.second, second);
    first = second = 0;
    for (Matrix& matrix : kept.matrices) {
      const std::int64_t rank = std::min<std::int64_t>({rank_, matrix.rows, matrix.columns});
      matrix.p = kept.first.flat.narrow(0, first, matrix.rows * rank).view({matrix.rows, rank});
      matrix.q =
          kept.second.flat.narrow(0, second, matrix.columns * rank).view({matrix.columns, rank});
      // The same start on every rank.
      auto generator = at::detail::createCPUGenerator(1000003 * index + matrix.member + 1);
      matrix.q.copy_(torch::randn(matrix.q.sizes(), generator, matrix.q.options()));
      orthogonalize(matrix.q);
      first += matrix.rows * rank;
      second += matrix.columns * rank;
    }
    for (Whole& whole : kept.wholes) {
      const std::int64_t count = bucket.views[whole.member].numel();
      whole.travelling = kept.first.flat.narrow(0, first, count);
      whole.error = kept.error.narrow(
          0, static_cast<std::int64_t>(bucket.plan->members[whole.member].offset), count);
      first += count;
    }
  }

  static void average(Communicator& communicator, Message& message) {
    const auto count = static_cast<std::size_t>(message.flat.numel());
    if (count == 0) return;
    communicator.allreduce(message.memory->data(), message.memory->data(), count,
                           data_type(message.flat.scalar_type()), ReduceOp::average);
  }

  int rank_;
  ReduceOp op_;
  std::deque<Kept> kept_;
};

}  // namespace

std::unique_ptr<GradientReducer> make_power_sgd_reducer(int rank, ReduceOp op) {
  return std::make_unique<PowerSgdReducer>(rank, op);
}

}  // namespace kolo::train
