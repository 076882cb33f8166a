// The table of operations. Adding one is a kind and a row.
#include "kolo/nas/operations.h"

#include <fmt/ranges.h>

#include "base/errors.h"
#include "base/registry.h"
#include "nas/graph/kinds.h"

namespace kolo::nas {

namespace {

constexpr Entry<const OperationKind*> kOperations[] = {
    {"Identity", "passes its input on", &kinds::identity},
    {"Zero", "no tensor: a branch that is off", &kinds::zero},
    {"Connect", "outputs of other nodes: a skip connection", &kinds::connect},
    {"Tensor", "a constant", &kinds::tensor},
    {"Dense", "fully connected over the last axis", &kinds::dense},
    {"Conv1D", "convolution of a signal (channels, length)", &kinds::conv1d},
    {"Conv2D", "convolution of an image (channels, height, width)", &kinds::conv2d},
    {"SeparableConv2D", "convolution per channel, then across channels", &kinds::separable_conv2d},
    {"MaxPooling1D", "largest of neighbours in a signal", &kinds::max_pooling1d},
    {"MaxPooling2D", "largest of neighbours in an image", &kinds::max_pooling2d},
    {"AveragePooling1D", "mean of neighbours in a signal", &kinds::average_pooling1d},
    {"AveragePooling2D", "mean of neighbours in an image", &kinds::average_pooling2d},
    {"GlobalAveragePooling", "mean of each channel", &kinds::global_average_pooling},
    {"BatchNormalization", "each channel to mean 0 and variance 1", &kinds::batch_normalization},
    {"Dropout", "sets a part of its input to zero while training", &kinds::dropout},
    {"Activation", "a function of each element", &kinds::activation},
    {"Flatten", "all elements in one axis", &kinds::flatten},
    {"Reshape", "the same elements in another shape", &kinds::reshape},
    {"LSTM", "long short-term memory over (time, features)", &kinds::lstm},
    {"Embedding", "a vector for each whole number", &kinds::embedding},
    {"Concatenate", "joins tensors, the smaller ones padded with zeros", &kinds::concatenate},
    {"AddByPadding", "sum of tensors, the smaller ones padded with zeros", &kinds::add_by_padding},
    {"AddByProjecting", "sum of tensors, projected to the shape of the first",
     &kinds::add_by_projecting},
};

constexpr Registry<const OperationKind*> kOperationTable{"operation", kOperations};

/// A value without quotation marks: "relu", "[2, 3]".
std::string plain(const Value& value) {
  return value.is_string() ? value.as_string() : value.to_string();
}

/// Calls `visit(name, value)` for the arguments that are given, in the order of the kind's.
template <class Visit>
void for_each_argument(const Operation& operation, Visit visit) {
  const auto& values = operation.arguments.as_dict();
  for (const Argument& argument : kind_of(operation).arguments)
    if (const auto found = values.find(argument.name); found != values.end())
      visit(argument, found->second);
}

}  // namespace

std::vector<OperationInfo> operations() {
  std::vector<OperationInfo> infos;
  for (const auto& entry : kOperationTable.entries())
    infos.push_back({entry.name, entry.summary, entry.make->arguments});
  return infos;
}

const OperationKind& operation_kind(std::string_view name) {
  return *kOperationTable.at(name).make;
}

const OperationKind& kind_of(const Operation& operation) {
  return operation.kind != nullptr ? *operation.kind : operation_kind(operation.name);
}

std::string Operation::to_string() const {
  std::string text;
  for_each_argument(*this, [&](const Argument& argument, const Value& value) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", argument.name, plain(value));
  });
  return fmt::format("{}({})", name, text);
}

std::string Operation::label() const {
  std::string text = name;
  for_each_argument(*this, [&](const Argument& argument, const Value& value) {
    if (argument.type == ArgumentType::nodes) return;
    if (argument.type == ArgumentType::activation && plain(value) == "none") return;
    text += " ";
    if (argument.type == ArgumentType::flag) text += std::string(argument.name) + " ";
    text += plain(value);
  });
  return text;
}

std::string to_string(const Shape& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

std::int64_t elements(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

void need_rank(const Shape& shape, std::size_t rank, std::string_view meaning) {
  if (shape.size() != rank)
    throw_error(ErrorCode::invalid_argument, "needs {}, but got {}", meaning, to_string(shape));
}

namespace op {
namespace {

/// Leaves out what is the default anyway, so that equal operations are written equally.
class Written {
 public:
  explicit Written(const char* name) : operation_(name) {}

  template <class T>
  Written& set(const char* name, T value) {
    operation_.arguments.as_dict().emplace(name, std::move(value));
    return *this;
  }
  Written& unless(const char* name, std::int64_t value, std::int64_t fallback) {
    return value == fallback ? *this : set(name, value);
  }
  Written& unless(const char* name, std::string_view value, std::string_view fallback) {
    return value == fallback ? *this : set(name, value);
  }
  operator Operation() { return std::move(operation_); }

 private:
  Operation operation_;
};

Operation convolution(const char* name, std::int64_t filters, std::int64_t kernel_size,
                      std::string_view activation, std::int64_t strides, std::string_view padding) {
  return Written(name)
      .set("filters", filters)
      .set("kernel_size", kernel_size)
      .unless("activation", activation, "none")
      .unless("strides", strides, 1)
      .unless("padding", padding, "same");
}

Operation pooling(const char* name, std::int64_t pool_size, std::int64_t strides,
                  std::string_view padding) {
  return Written(name)
      .set("pool_size", pool_size)
      .unless("strides", strides, 0)
      .unless("padding", padding, "valid");
}

Value::List list_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

}  // namespace

Operation identity() { return Operation("Identity"); }
Operation zero() { return Operation("Zero"); }

Operation connect(std::vector<NodeId> sources) {
  Value::List numbers;
  for (const NodeId source : sources) numbers.emplace_back(static_cast<std::int64_t>(source));
  return Written("Connect").set("sources", std::move(numbers));
}

Operation tensor(Shape shape, double value) {
  return Written("Tensor").set("shape", list_of(shape)).set("value", value);
}

Operation dense(std::int64_t units, std::string_view activation) {
  return Written("Dense").set("units", units).unless("activation", activation, "none");
}

Operation conv1d(std::int64_t filters, std::int64_t kernel_size, std::string_view activation,
                 std::int64_t strides, std::string_view padding) {
  return convolution("Conv1D", filters, kernel_size, activation, strides, padding);
}
Operation conv2d(std::int64_t filters, std::int64_t kernel_size, std::string_view activation,
                 std::int64_t strides, std::string_view padding) {
  return convolution("Conv2D", filters, kernel_size, activation, strides, padding);
}
Operation separable_conv2d(std::int64_t filters, std::int64_t kernel_size,
                           std::string_view activation, std::int64_t strides,
                           std::string_view padding) {
  return convolution("SeparableConv2D", filters, kernel_size, activation, strides, padding);
}

Operation max_pooling1d(std::int64_t pool_size, std::int64_t strides, std::string_view padding) {
  return pooling("MaxPooling1D", pool_size, strides, padding);
}
Operation max_pooling2d(std::int64_t pool_size, std::int64_t strides, std::string_view padding) {
  return pooling("MaxPooling2D", pool_size, strides, padding);
}
Operation average_pooling1d(std::int64_t pool_size, std::int64_t strides,
                            std::string_view padding) {
  return pooling("AveragePooling1D", pool_size, strides, padding);
}
Operation average_pooling2d(std::int64_t pool_size, std::int64_t strides,
                            std::string_view padding) {
  return pooling("AveragePooling2D", pool_size, strides, padding);
}
Operation global_average_pooling() { return Operation("GlobalAveragePooling"); }

Operation batch_normalization() { return Operation("BatchNormalization"); }
Operation dropout(double rate) { return Written("Dropout").set("rate", rate); }
Operation activation(std::string_view name) {
  return Written("Activation").set("activation", name);
}
Operation flatten() { return Operation("Flatten"); }
Operation reshape(Shape shape) { return Written("Reshape").set("shape", list_of(shape)); }

Operation lstm(std::int64_t units, bool return_sequences) {
  Written written("LSTM");
  written.set("units", units);
  if (return_sequences) written.set("return_sequences", true);
  return written;
}
Operation embedding(std::int64_t input_dim, std::int64_t output_dim) {
  return Written("Embedding").set("input_dim", input_dim).set("output_dim", output_dim);
}

Operation concatenate() { return Operation("Concatenate"); }
Operation add_by_padding(std::string_view activation) {
  return Written("AddByPadding").unless("activation", activation, "none");
}
Operation add_by_projecting(std::string_view activation, std::int64_t units) {
  return Written("AddByProjecting")
      .unless("units", units, 0)
      .unless("activation", activation, "none");
}

}  // namespace op

}  // namespace kolo::nas
