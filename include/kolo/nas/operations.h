// Operations: what a node of an architecture space may do with the tensors that come in.
//
// An operation is data (a name and arguments), so that spaces can be drawn, compared and written
// down; its kind says how shapes follow and makes the layer. Shapes are those of one sample,
// without the batch, channels first as libtorch has them: features {F}, signals {C, L}, images
// {C, H, W}; sequences for LSTM are {time, features}.
//
//   const Operation layer = op::dense(32, "relu");           // a built-in one
//   const Operation mine{"Scale", {{"by", 2.0}}, &kScale};   // one of the user's own kind
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/search/value.h"

namespace kolo::nas {

using search::Value;

/// Of one sample, without the batch.
using Shape = std::vector<std::int64_t>;

/// "(3, 8, 8)"
std::string to_string(const Shape& shape);

/// A node of a KSearchSpace; made by it.
enum class NodeId : std::int64_t {};

/// The tensors that a layer is applied to: batch x shape each. A view, valid during the call.
class Inputs {
 public:
  explicit Inputs(std::span<const torch::Tensor> tensors)
      : tensors_(tensors.data()), count_(tensors.size()) {}
  /// `tensors[which[0]]`, `tensors[which[1]]`, …: no tensor is copied to gather them.
  Inputs(const torch::Tensor* tensors, std::span<const std::uint32_t> which)
      : tensors_(tensors), which_(which.data()), count_(which.size()) {}

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  const torch::Tensor& operator[](std::size_t index) const noexcept {
    return tensors_[which_ != nullptr ? which_[index] : index];
  }

 private:
  const torch::Tensor* tensors_;
  const std::uint32_t* which_ = nullptr;
  std::size_t count_;
};

/// An operation with its weights, made for inputs of known shapes.
class Layer : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const Inputs& inputs) = 0;
};

/// How many tensors an operation takes. `none` is given the first input of the model, so that it
/// knows the size of the batch.
enum class Arity { none, one, several };

enum class ArgumentType {
  count,       ///< a whole number from 1
  counts,      ///< one such number for all dimensions, or a list with one for each
  fraction,    ///< a number from 0, below 1
  number,      ///< any number
  numbers,     ///< a number or a list of numbers
  integer,     ///< a whole number
  flag,        ///< a truth
  activation,  ///< a name of activations()
  padding,     ///< "same" or "valid", with the meaning of Keras
  shape,       ///< a list of whole numbers from 1
  nodes,       ///< a list of numbers of nodes
};

struct Argument {
  std::string_view name;
  ArgumentType type;
  bool required = false;
};

/// The arguments of an operation, to be read by its kind. Checked before: names and types are
/// right.
class Arguments {
 public:
  explicit Arguments(const Value& dictionary) : values_(&dictionary) {}

  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  [[nodiscard]] double number(std::string_view name, double fallback) const;
  [[nodiscard]] bool flag(std::string_view name, bool fallback) const;
  [[nodiscard]] std::string text(std::string_view name, std::string_view fallback) const;
  /// One number for each of `dimensions`. Throws invalid_argument when the list has another length.
  [[nodiscard]] std::vector<std::int64_t> counts(std::string_view name, std::size_t dimensions,
                                                 std::vector<std::int64_t> fallback) const;
  [[nodiscard]] Shape shape(std::string_view name) const;
  [[nodiscard]] std::vector<double> numbers(std::string_view name) const;

 private:
  [[nodiscard]] const Value* find(std::string_view name) const;
  const Value* values_;
};

/// What operations of one name have in common. Those of the user's are usually static constants;
/// a kind must outlive the spaces that use it.
struct OperationKind {
  Arity arity = Arity::one;
  std::span<const Argument> arguments{};
  /// The shape of the output. Throws invalid_argument, naming the shape it was given and what it
  /// needs; the space adds the names of node and operation.
  Shape (*infer)(const Arguments& arguments, std::span<const Shape> inputs) = nullptr;
  /// The layer, with new weights from libtorch's default generator. Null: the operation passes its
  /// only input on as it is.
  std::shared_ptr<Layer> (*make)(const Arguments& arguments,
                                 std::span<const Shape> inputs) = nullptr;
};

/// A name and arguments, and the kind where it is not a built-in one.
struct Operation {
  Operation(std::string the_name);  // NOLINT: a name is an operation without arguments
  Operation(std::string the_name, Value the_arguments, const OperationKind* the_kind = nullptr);

  std::string name;
  Value arguments;
  const OperationKind* kind;  ///< null: the built-in kind of this name

  /// Throws not_found for an unknown name, invalid_argument for arguments that are unknown, missing
  /// or of a wrong type.
  void check() const;
  /// "Dense(units=16, activation=relu)"
  [[nodiscard]] std::string to_string() const;
  /// "Dense 16 relu", for drawings
  [[nodiscard]] std::string label() const;

  /// Same name, same arguments.
  friend bool operator==(const Operation& left, const Operation& right) {
    return left.name == right.name && left.arguments == right.arguments;
  }
};

struct OperationInfo {
  std::string_view name;
  std::string_view summary;
  std::span<const Argument> arguments;
};

/// The built-in operations.
std::vector<OperationInfo> operations();
/// Throws not_found, listing the known ones.
const OperationKind& operation_kind(std::string_view name);
/// none, relu, tanh, sigmoid, swish, elu, selu, softmax, gelu
std::vector<std::string_view> activations();

/// Short ways to write the built-in operations. docs/nas-spaces.md has the table of arguments.
namespace op {

Operation identity();
/// No tensor at all: who merges it with others sees only the others.
Operation zero();
/// The outputs of other nodes: a skip connection. They come after what is connected to the node.
Operation connect(std::vector<NodeId> sources);
Operation tensor(Shape shape, double value);
Operation dense(std::int64_t units, std::string_view activation = "none");
Operation conv1d(std::int64_t filters, std::int64_t kernel_size,
                 std::string_view activation = "none", std::int64_t strides = 1,
                 std::string_view padding = "same");
Operation conv2d(std::int64_t filters, std::int64_t kernel_size,
                 std::string_view activation = "none", std::int64_t strides = 1,
                 std::string_view padding = "same");
Operation separable_conv2d(std::int64_t filters, std::int64_t kernel_size,
                           std::string_view activation = "none", std::int64_t strides = 1,
                           std::string_view padding = "same");
/// `strides` 0: the size of the pool.
Operation max_pooling1d(std::int64_t pool_size, std::int64_t strides = 0,
                        std::string_view padding = "valid");
Operation max_pooling2d(std::int64_t pool_size, std::int64_t strides = 0,
                        std::string_view padding = "valid");
Operation average_pooling1d(std::int64_t pool_size, std::int64_t strides = 0,
                            std::string_view padding = "valid");
Operation average_pooling2d(std::int64_t pool_size, std::int64_t strides = 0,
                            std::string_view padding = "valid");
Operation global_average_pooling();
Operation batch_normalization();
Operation dropout(double rate);
Operation activation(std::string_view name);
Operation flatten();
Operation reshape(Shape shape);
Operation lstm(std::int64_t units, bool return_sequences = false);
Operation embedding(std::int64_t input_dim, std::int64_t output_dim);
Operation concatenate();
Operation add_by_padding(std::string_view activation = "none");
/// `units` 0: those of the first tensor that comes in.
Operation add_by_projecting(std::string_view activation = "none", std::int64_t units = 0);

}  // namespace op

}  // namespace kolo::nas
