#include "comm/tree_allreduce.h"

#include <vector>

#include "comm/internals.h"
#include "comm/meeting.h"
#include "comm/reduction.h"

namespace kolo::comm {

Card tree_card(void* blocks, std::size_t count, DataType type, double postscale) {
  return reduction_card(OpKind::allreduce, blocks, blocks, count, type, ReduceOp::sum,
                        {1.0, postscale});
}

Reduction tree_reduction(DataType type, double postscale, const TreeOrder& order) {
  Reduction how = reduction_of(type, ReduceOp::sum, {1.0, postscale}, 1);
  how.tree = &order;
  return how;
}

void tree_allreduce(Communicator& communicator, void* blocks, std::size_t count, DataType type,
                    double postscale, const TreeOrder& order) {
  Group& group = Internals::group_of(communicator);
  const std::size_t stride = block_stride(count, type);
  const auto bytes_of = [&](int brought) {
    return brought == 0 ? 0
                        : static_cast<std::size_t>(brought - 1) * stride + count * size_of(type);
  };
  // The same answer everywhere: that of who has most.
  const bool is_eager = bytes_of(order.most_blocks()) <= group.eager_bytes();
  Card card = tree_card(blocks, count, type, postscale);
  sign(card, Agree::all, order.fingerprint());
  const std::size_t mine = bytes_of(order.blocks_of(group.rank()));
  const Exchanged all = meet(group, card, blocks, is_eager ? mine : 0);
  if (count == 0) return;
  const Reduction how = tree_reduction(type, postscale, order);
  if (!is_eager) return group.allreduce(blocks, blocks, count, how);
  std::vector<const void*> inputs;
  for (const TreeOrder::Step& step : order.steps()) {
    const std::byte* from = step.member == group.rank()
                                ? static_cast<const std::byte*>(blocks)
                                : all.payload(step.member, bytes_of(order.blocks_of(step.member)));
    inputs.push_back(from + static_cast<std::size_t>(step.block) * stride);
  }
  reduce_tree(order, inputs, {&blocks, 1}, count, how);
}

}  // namespace kolo::comm
