#include "comm/reduction.h"

#include "comm/meeting.h"

namespace kolo::comm {

Card reduction_card(OpKind kind, const void* input, void* output, std::size_t count, DataType type,
                    ReduceOp op, Scaling scaling) {
  Card card;
  card.kind = kind;
  card.type = type;
  card.op = op;
  card.count = count;
  card.prescale = scaling.prescale;
  card.postscale = scaling.postscale;
  card.input = address(input);
  card.output = address(output);
  return card;
}

Reduction reduction_of(DataType type, ReduceOp op, Scaling scaling, int ranks) {
  Reduction how{type, op, scaling.prescale, scaling.postscale, 1};
  if (op == ReduceOp::average) {
    how.op = ReduceOp::sum;
    how.divisor = ranks;
  }
  return how;
}

}  // namespace kolo::comm
