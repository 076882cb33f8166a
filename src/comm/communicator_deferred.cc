// Operations of a Communicator that are begun, advanced and completed.
#include "comm/communicator_deferred.h"

#include "base/errors.h"
#include "comm/card.h"
#include "comm/meeting.h"
#include "kolo/communicator.h"

namespace kolo {

using comm::Agree;
using comm::Card;
using comm::Deferred;
using comm::OpKind;

bool Communicator::can_defer() const noexcept { return group_->can_post(); }

void Communicator::begin_meeting(const void* mine, std::size_t bytes) {
  KOLO_CHECK(deferred_->kind == Deferred::Kind::none && bytes <= 48);
  Card card;
  card.kind = OpKind::allgather;
  card.count = bytes;
  sign(card, Agree::all);
  group_->post(card, mine, bytes);
  deferred_->kind = Deferred::Kind::meeting;
  deferred_->bytes = bytes;
}

void Communicator::begin_allreduce(void* data, std::size_t count, DataType type, ReduceOp op,
                                   Scaling scaling) {
  KOLO_CHECK(deferred_->kind == Deferred::Kind::none && op != ReduceOp::adasum);
  Card card;
  card.kind = OpKind::allreduce;
  card.type = type;
  card.op = op;
  card.count = count;
  card.prescale = scaling.prescale;
  card.postscale = scaling.postscale;
  card.input = card.output = comm::address(data);
  sign(card, Agree::all);
  group_->post(card, nullptr, 0);
  deferred_->kind = Deferred::Kind::allreduce;
  deferred_->count = count;
  deferred_->how = {type, op, scaling.prescale, scaling.postscale, 1};
  if (op == ReduceOp::average) {
    deferred_->how.op = ReduceOp::sum;
    deferred_->how.divisor = size();
  }
}

bool Communicator::advance() {
  if (deferred_->kind == Deferred::Kind::none) return true;
  if (!group_->all_posted()) return false;
  complete();
  return true;
}

void Communicator::await() {
  if (deferred_->kind != Deferred::Kind::none) group_->await_posted();
}

void Communicator::complete() {
  const Deferred::Kind kind = std::exchange(deferred_->kind, Deferred::Kind::none);
  if (kind == Deferred::Kind::none) return;
  const comm::Exchanged all = group_->take_up();
  if (!all.agreed()) throw comm::mismatch(all, group_->size());
  if (kind == Deferred::Kind::allreduce)
    return group_->reduce_own_part(deferred_->count, deferred_->how);
  deferred_->shown.clear();
  for (int r = 0; r < size(); ++r) deferred_->shown.push_back(all.payload(r, deferred_->bytes));
}

const void* Communicator::shown_by(int rank) const {
  return deferred_->shown.at(static_cast<std::size_t>(rank));
}

}  // namespace kolo
