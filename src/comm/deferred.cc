#include "comm/deferred.h"

#include <utility>

#include "base/errors.h"
#include "comm/card.h"
#include "comm/internals.h"
#include "comm/meeting.h"
#include "comm/reduction.h"
#include "comm/tree_allreduce.h"

namespace kolo::comm {

Deferred::Deferred(Communicator& communicator) : group_(Internals::group_of(communicator)) {}

void Deferred::begin_meeting(const void* mine, std::size_t bytes) {
  KOLO_CHECK(kind_ == Kind::none && bytes <= 48);
  Card card;
  card.kind = OpKind::allgather;
  card.count = bytes;
  sign(card, Agree::all);
  group_.post(card, mine, bytes);
  kind_ = Kind::meeting;
  bytes_ = bytes;
}

void Deferred::begin_allreduce(void* data, std::size_t count, DataType type, ReduceOp op,
                               Scaling scaling) {
  KOLO_CHECK(op != ReduceOp::adasum);
  begin(reduction_card(OpKind::allreduce, data, data, count, type, op, scaling),
        reduction_of(type, op, scaling, group_.size()), 0);
}

void Deferred::begin_tree_allreduce(void* blocks, std::size_t count, DataType type,
                                    double postscale, const TreeOrder& order) {
  begin(tree_card(blocks, count, type, postscale), tree_reduction(type, postscale, order),
        order.fingerprint());
}

void Deferred::begin(Card card, const Reduction& how, std::uint64_t salt) {
  KOLO_CHECK(kind_ == Kind::none);
  sign(card, Agree::all, salt);
  group_.post(card, nullptr, 0);
  kind_ = Kind::allreduce;
  count_ = card.count;
  how_ = how;
}

bool Deferred::advance() {
  if (kind_ == Kind::none) return true;
  if (!group_.all_posted()) return false;
  complete();
  return true;
}

void Deferred::await() {
  if (kind_ == Kind::none) return;
  try {
    group_.await_posted();
  } catch (...) {
    kind_ = Kind::none;  // lost, and so is what comes after: that is for the group to say
    throw;
  }
}

void Deferred::complete() {
  const Kind kind = std::exchange(kind_, Kind::none);
  if (kind == Kind::none) return;
  const Exchanged all = check_agreed(group_.take_up(), group_);
  if (kind == Kind::allreduce) return group_.reduce_own_part(count_, how_);
  shown_.clear();
  for (int r = 0; r < group_.size(); ++r) shown_.push_back(all.payload(r, bytes_));
}

}  // namespace kolo::comm
