// Cells of convolutions and pools for small images, in the manner of NASNet (Zoph et al., "Learning
// transferable architectures for scalable image recognition", 2018) with the binary skip
// connections of dense_skip_co. Small enough that an architecture trains on 8x8 digits in about a
// second on one core.
//
//   image -> stem -> cell 1 -> reduce -> cell 2 … -> head -> dense -> dropout -> output
//
// A node of a cell is an operation, a normalisation, an activation, and a sum with those of the up
// to two tensors before it that the architecture connects. Inside a cell places stay, channels
// follow the operations: sums project.
#include <algorithm>
#include <deque>

#include "base/errors.h"
#include "kolo/nas/spaces.h"
#include "nas/spaces/settings.h"

namespace kolo::nas {
namespace {

std::vector<Operation> stem_operations(const std::vector<std::int64_t>& filters,
                                       std::int64_t strides) {
  std::vector<Operation> operations;
  for (const std::int64_t kernel_size : {3, 5})
    for (const std::int64_t count : filters)
      operations.push_back(op::conv2d(count, kernel_size, "relu", strides));
  return operations;
}

std::vector<Operation> cell_operations(const std::vector<std::int64_t>& filters) {
  std::vector<Operation> operations{op::identity(), op::max_pooling2d(3, 1, "same"),
                                    op::average_pooling2d(3, 1, "same")};
  for (const std::int64_t count : filters) {
    for (const std::int64_t kernel_size : {1, 3, 5})
      operations.push_back(op::conv2d(count, kernel_size));
    operations.push_back(op::separable_conv2d(count, 3));
  }
  return operations;
}

class ConvCells {
 public:
  ConvCells(KSearchSpace& space, std::int64_t nodes_per_cell, std::vector<std::int64_t> filters)
      : space_(space), nodes_per_cell_(nodes_per_cell), filters_(std::move(filters)) {}

  void stem(std::int64_t strides) {
    last_ = space_.input();
    follow("stem", stem_operations(filters_, strides));
  }

  void cell(const std::string& name) {
    std::deque<NodeId> anchors{last_};
    for (std::int64_t i = 1; i <= nodes_per_cell_; ++i) {
      const std::string node = name + "_node" + std::to_string(i);
      follow(node + "_op", cell_operations(filters_));
      follow(node + "_norm", {op::identity(), op::batch_normalization()});
      follow(node + "_act", {op::identity(), op::activation("relu"), op::activation("swish"),
                             op::activation("tanh")});
      const NodeId sum = space_.add_constant(node + "_sum", op::add_by_projecting());
      space_.connect(last_, sum);
      for (std::size_t skip = 0; skip < anchors.size(); ++skip)
        space_.connect(space_.add_variable(node + "_skip" + std::to_string(skip + 1),
                                           {op::zero(), op::connect({anchors[skip]})}),
                       sum);
      last_ = sum;
      anchors.push_back(sum);
      if (anchors.size() > 2) anchors.pop_front();
    }
  }

  void reduction(const std::string& name) {
    follow(name, {op::max_pooling2d(2, 2, "same"), op::average_pooling2d(2, 2, "same"),
                  op::conv2d(*std::max_element(filters_.begin(), filters_.end()), 3, "relu", 2)});
  }

  void head() {
    follow("head", {op::flatten(), op::global_average_pooling()});
    follow("dense", {op::identity(), op::dense(32, "relu"), op::dense(64, "relu")});
    follow("dropout", {op::identity(), op::dropout(0.2), op::dropout(0.4)});
  }

 private:
  void follow(std::string name, std::vector<Operation> operations) {
    const NodeId node = space_.add_variable(std::move(name), std::move(operations));
    space_.connect(last_, node);
    last_ = node;
  }

  KSearchSpace& space_;
  std::int64_t nodes_per_cell_;
  std::vector<std::int64_t> filters_;
  NodeId last_{};
};

}  // namespace

std::shared_ptr<KSearchSpace> conv_cells(const std::vector<Shape>& inputs,
                                         const std::vector<Shape>& outputs, const Value& settings) {
  const SpaceSettings known("conv_cells", settings,
                            {"num_cells", "nodes_per_cell", "filters", "stem_strides"});
  if (inputs.size() != 1 || inputs[0].size() != 3)
    throw_error(
        ErrorCode::invalid_argument,
        "space conv_cells: needs one input of shape (channels, height, width), but got {}{}",
        inputs.empty() ? "none" : to_string(inputs[0]), inputs.size() > 1 ? " and others" : "");
  const bool large = std::max(inputs[0][1], inputs[0][2]) > 16;
  const std::int64_t num_cells = known.integer("num_cells", 2, 1, 100);
  auto space = std::make_shared<KSearchSpace>(inputs, outputs);
  ConvCells cells(*space, known.integer("nodes_per_cell", 2, 1, 100),
                  known.counts("filters", {8, 16}));
  cells.stem(known.integer("stem_strides", large ? 2 : 1, 1, 8));
  for (std::int64_t i = 1; i <= num_cells; ++i) {
    if (i > 1) cells.reduction("reduce" + std::to_string(i - 1));
    cells.cell("cell" + std::to_string(i));
  }
  cells.head();
  add_outputs(*space);
  space->check();
  return space;
}

}  // namespace kolo::nas
