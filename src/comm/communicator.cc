// A Communicator itself, its groups, and messages between two ranks. The reductions are in
// communicator_reduce.cc, the operations that move data in communicator_move.cc.
#include "kolo/communicator.h"

#include <algorithm>
#include <span>

#include "base/errors.h"
#include "base/hash.h"
#include "base/process_owned.h"
#include "comm/communicator_scratch.h"
#include "comm/internals.h"
#include "comm/meeting.h"

namespace kolo {

using comm::Agree;
using comm::Card;
using comm::OpKind;

Communicator::Communicator(std::shared_ptr<comm::Group> group, Topology topology,
                           std::shared_ptr<SharedMemory> memory)
    : group_(std::move(group)),
      topology_(std::move(topology)),
      memory_(std::move(memory)),
      scratch_(std::make_unique<comm::Scratch>(memory_)) {}

Communicator::~Communicator() {
  if (group_->is_of_this_process()) return;
  // A fork has the object, but is no member: what ends a group would be said to the others, in
  // memory that is the parent's. So all of it is forgotten.
  forget(std::move(scratch_));
  forget(std::make_unique<std::shared_ptr<comm::Group>>(std::move(group_)));
  forget(std::make_unique<std::shared_ptr<SharedMemory>>(std::move(memory_)));
}

std::string Communicator::transport() const { return group_->describe(); }

std::size_t Communicator::one_trip_bytes() const noexcept { return group_->one_trip_bytes(); }
void Communicator::set_one_trip_bytes(std::size_t bytes) noexcept {
  group_->set_one_trip_bytes(bytes);
}

void Communicator::barrier() {
  Card card;
  card.kind = OpKind::barrier;
  sign(card, Agree::all);
  comm::meet(*group_, card, nullptr, 0);
}

// --- point to point ------------------------------------------------------------------------------

namespace {

struct MessageHeader {
  std::uint64_t count = 0;
  DataType type = DataType::uint8;
};

void check_message(const char* what, std::size_t count, DataType type, int peer, int rank,
                   int size) {
  if (count > comm::kMostElements)
    throw_error(ErrorCode::invalid_argument, "{}: {} elements are more than any machine holds",
                what, count);
  if (!comm::is_known(type))
    throw_error(ErrorCode::invalid_argument, "{}: {} is not a data type", what,
                static_cast<int>(type));
  if (peer < 0 || peer >= size || peer == rank)
    throw_error(ErrorCode::invalid_argument, "{}: rank {} is {}", what, peer,
                peer == rank ? "this rank itself" : fmt::format("not in 0…{}", size - 1));
}

}  // namespace

void Communicator::send(const void* data, std::size_t count, DataType type, int to) {
  check_message("send", count, type, to, rank(), size());
  if (data == nullptr && count != 0)
    throw_error(ErrorCode::invalid_argument, "send to rank {}: data is null", to);
  const MessageHeader header{count, type};
  group_->send(to, std::as_bytes(std::span(&header, 1)), data, count * size_of(type));
}

void Communicator::recv(void* data, std::size_t count, DataType type, int from) {
  check_message("recv", count, type, from, rank(), size());
  if (data == nullptr && count != 0)
    throw_error(ErrorCode::invalid_argument, "recv from rank {}: data is null", from);
  MessageHeader header;
  const std::size_t bytes =
      group_->recv_header(from, std::as_writable_bytes(std::span(&header, 1)));
  const bool fits = header.count == count && header.type == type;
  group_->recv_body(from, fits ? data : nullptr, bytes);
  if (!fits)
    throw_error(ErrorCode::invalid_argument,
                "recv: expected {} × {}, but rank {} sent {} × {}; the message is discarded", count,
                to_string(type), from, header.count, to_string(header.type));
}

// --- groups --------------------------------------------------------------------------------------

std::unique_ptr<Communicator> Communicator::subset(const std::vector<int>& ranks) {
  constexpr auto kKind = OpKind::subset;
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) comm::refuse(*group_, kKind, "the list of ranks is empty");
  if (sorted.front() < 0 || sorted.back() >= size())
    comm::refuse(*group_, kKind, "rank {} is not in 0…{}",
                 sorted.front() < 0 ? sorted.front() : sorted.back(), size() - 1);
  if (auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    comm::refuse(*group_, kKind, "rank {} is listed twice", *twice);
  std::uint64_t salt = 0;
  for (int r : ranks) salt = hash_combine(salt, static_cast<std::uint64_t>(r));
  Card card;
  card.kind = kKind;
  sign(card, Agree::all, salt);
  comm::meet(*group_, card, nullptr, 0);
  std::shared_ptr<comm::Group> group = group_->subset(ranks);
  if (group == nullptr) return nullptr;
  return comm::Internals::make(std::move(group), topology_.subset(ranks), memory_);
}

}  // namespace kolo
