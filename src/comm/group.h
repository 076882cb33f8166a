// A fixed set of ranks and the ways bytes move between them: what a Communicator stands on.
//
// Every collective has two parts.
//   1. exchange(): all members meet and show each other a Card (what I am about to do) together
//      with up to eager_bytes() of payload. Whoever sees cards that do not fit throws, and as all
//      see the same cards, all throw; no data has moved, so the group stays usable.
//   2. If the data did not fit in the exchange, one of the bulk operations below, called by all
//      members with arguments that the cards showed to fit. It must directly follow an exchange
//      whose card has the same `input` and `output` as the operation (broadcast: both are the
//      data): that meeting is also what tells everybody that the operation before is over.
// Small operations therefore need one meeting and nothing else.
//
// Groups: SoloGroup (one rank), shm/ShmGroup (one host), wire/WireGroup (messages between hosts),
// wire/HierarchicalGroup (shm inside, wire across). One thread at a time per group.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kolo/types.h"

namespace kolo::comm {

class TreeOrder;

enum class OpKind : std::uint8_t {
  barrier = 1,
  allreduce = 2,
  grouped_allreduce = 3,
  reducescatter = 4,
  allgather = 5,
  broadcast = 6,
  alltoall = 7,
  gather = 8,
  scatter = 9,
  subset = 10,
};
std::string_view to_string(OpKind kind) noexcept;

/// What one rank brings to a collective. One cache line; also a wire message, so plain data.
struct Card {
  /// Hash of all that must be equal on every rank. Zero is never a signature.
  std::uint64_t signature = 0;
  OpKind kind = OpKind::barrier;
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::uint8_t reason = 0;  ///< of a refusal
  std::int32_t root = -1;
  std::uint64_t count = 0;     ///< elements; part of the signature only where it must agree
  std::uint64_t row_size = 1;  ///< elements per row
  double prescale = 1.0;
  double postscale = 1.0;
  /// Where the data of the bulk operation that may follow is: addresses when given to exchange();
  /// what a group makes of them for its own use is its own affair.
  std::uint64_t input = 0;
  std::uint64_t output = 0;
};
static_assert(sizeof(Card) == 64);

/// What all members brought. Valid until the next call on the group.
class Exchanged {
 public:
  /// Where things are, relative to a member's row.
  struct Layout {
    std::size_t card = 0;
    std::size_t small = 0;  ///< payload of up to small_limit bytes
    std::size_t small_limit = 0;
    std::size_t large = 0;  ///< longer payload
  };
  /// `rows[r]` is member r's row; the array belongs to the group.
  Exchanged(const std::byte* const* rows, const Layout& layout, bool agreed)
      : rows_(rows), layout_(layout), agreed_(agreed) {}

  /// All signatures are equal.
  [[nodiscard]] bool agreed() const noexcept { return agreed_; }
  [[nodiscard]] const Card& card(int rank) const noexcept {
    return *reinterpret_cast<const Card*>(rows_[rank] + layout_.card);
  }
  /// The payload of a rank that brought `bytes` of it. At least 16-byte aligned.
  [[nodiscard]] const std::byte* payload(int rank, std::size_t bytes) const noexcept {
    return rows_[rank] + (bytes <= layout_.small_limit ? layout_.small : layout_.large);
  }

 private:
  const std::byte* const* rows_;
  Layout layout_;
  bool agreed_;
};

/// A reduction over `count` elements of all members; see reduce_kernels.h for the arithmetic.
/// op is sum, min, max or product here: average is a sum with a divisor.
struct Reduction {
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  double prescale = 1.0;
  double postscale = 1.0;
  /// The result is divided by this after postscale; apart from it because integers divide exactly.
  std::int64_t divisor = 1;
  /// Of an allreduce in place, with sum and without prescale: members bring blocks of `count`
  /// elements and the order is this one, not theirs (tree_order.h). The result comes where the
  /// first block was. Null: one block each, in the order of members.
  const TreeOrder* tree = nullptr;
};

class Group {
 public:
  virtual ~Group() = default;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  /// False in a fork of the process that is the member.
  [[nodiscard]] bool is_of_this_process() const noexcept { return owner_ == ::getpid(); }

  /// "shm", "tcp", "mpi", "shm+tcp", "solo".
  [[nodiscard]] virtual std::string describe() const = 0;

  /// How long a member that does not come is waited for. Zero: nobody is.
  [[nodiscard]] virtual std::chrono::milliseconds timeout() const noexcept { return {}; }

  /// Largest payload of exchange(). At least 48.
  [[nodiscard]] virtual std::size_t eager_bytes() const noexcept = 0;

  /// Where two ways of an allreduce between hosts part: up to this many bytes from a member
  /// everything goes to everybody in one trip, beyond it to owners of slices and back. The bits are
  /// the same. To be changed on all members alike, between operations. 0: no wire here.
  [[nodiscard]] virtual std::size_t one_trip_bytes() const noexcept { return 0; }
  virtual void set_one_trip_bytes(std::size_t) noexcept {}

  /// Meets all members. See the top of this file. Throws peer_lost.
  virtual Exchanged exchange(const Card& card, const void* payload, std::size_t bytes) = 0;

  /// Whether an allreduce of so much should go through exchange_and_allreduce(). The same answer on
  /// all members.
  [[nodiscard]] virtual bool carries(std::size_t count, DataType type) const noexcept;
  /// exchange() and allreduce() in one: the meeting itself carries the data's first way. Nothing
  /// has been reduced if the cards do not agree, and only then can they be looked at.
  virtual Exchanged exchange_and_allreduce(const Card& card, const void* input, void* output,
                                           std::size_t count, const Reduction& how);

  // --- bulk operations, after an exchange that agreed ------------------------------------------
  /// input == output is allowed; other overlaps are not.
  virtual void allreduce(const void* input, void* output, std::size_t count,
                         const Reduction& how) = 0;

  /// Member r receives the reduction of elements [Σ counts[<r], + counts[r]) in `output`.
  virtual void reducescatter(const void* input, void* output, std::span<const std::size_t> counts,
                             const Reduction& how) = 0;

  /// Member r contributes bytes[r] bytes; output holds their concatenation on every member.
  /// `input` may be where it belongs inside `output`.
  virtual void allgather(const void* input, void* output, std::span<const std::size_t> bytes) = 0;

  virtual void broadcast(void* data, std::size_t bytes, int root) = 0;

  /// Contiguous blocks in rank order on both sides; the block for oneself is included.
  virtual void alltoall(const void* input, std::span<const std::size_t> send_bytes, void* output,
                        std::span<const std::size_t> recv_bytes) = 0;

  // --- meetings that nobody waits in ------------------------------------------------------------
  /// Whether the calls below work: members must be able to look at each other's memory.
  [[nodiscard]] virtual bool can_post() const noexcept { return false; }

  /// The first half of exchange(): shows the card and returns. Nothing else may be called before
  /// the second half, take_up(), except all_posted().
  virtual void post(const Card& card, const void* payload, std::size_t bytes);
  [[nodiscard]] virtual bool all_posted() const noexcept;
  /// Waits until all have posted.
  virtual void await_posted();
  /// The second half: waits for those who have not posted.
  virtual Exchanged take_up();

  /// After an exchange that agreed, with inputs and outputs in own memory: this member's part of an
  /// allreduce in place. When all have come to the next meeting, all parts are done.
  virtual void reduce_own_part(std::size_t count, const Reduction& how);

  // --- point to point ---------------------------------------------------------------------------
  /// In order per pair; `header` (32 bytes at most) travels in front. recv_header() waits for the
  /// next message and returns its header and size; recv_body() must follow and takes it all
  /// (`data` may be null: the message is thrown away).
  virtual void send(int to, std::span<const std::byte> header, const void* data,
                    std::size_t bytes) = 0;
  virtual std::size_t recv_header(int from, std::span<std::byte> header) = 0;
  virtual void recv_body(int from, void* data, std::size_t bytes) = 0;

  /// This member has learned elsewhere that `member` is lost, and comes no more: whoever waits for
  /// this one names that one. Nothing else may be called afterwards.
  virtual void give_up(int /*member*/) noexcept {}

  /// A member of which is known that it is gone. Does not wait.
  [[nodiscard]] virtual std::optional<int> lost_member() const { return std::nullopt; }

  /// A group of some members (indices into this group; member i becomes rank i). Called by all
  /// members of this group in the same order; non-members get nullptr.
  virtual std::unique_ptr<Group> subset(const std::vector<int>& members) = 0;

 protected:
  Group(int rank, int size) : rank_(rank), size_(size) {}

 private:
  int rank_, size_;
  pid_t owner_ = ::getpid();
};

/// A group of one.
std::unique_ptr<Group> make_solo_group();

}  // namespace kolo::comm
