// A Group whose members talk through a Messenger, each with each.
//
// The algorithms are written once for all wires, and the order of summation is that of the members,
// so the bits of a result depend on the inputs and their order alone. docs/transports.md counts
// steps and bytes.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "comm/group.h"
#include "comm/wire/scratch.h"
#include "comm/wire/wire.h"
#include "comm/wire/wire_link.h"

namespace kolo::comm {

class WireGroup final : public Group {
 public:
  /// All members of the link.
  WireGroup(std::shared_ptr<WireLink> link, ConnectWire connect);
  /// Some of them: a lane of a hierarchical group. Errors carry ranks of the link.
  WireGroup(std::shared_ptr<WireLink> link, std::vector<int> members);
  /// Waits a moment for short sends that nobody has received yet.
  ~WireGroup() override;

  [[nodiscard]] std::string describe() const override { return link_->options().name; }
  [[nodiscard]] std::chrono::milliseconds timeout() const noexcept override {
    return link_->options().timeout;
  }
  [[nodiscard]] std::optional<int> lost_member() const override { return link_->lost_member(); }
  [[nodiscard]] std::size_t eager_bytes() const noexcept override;
  [[nodiscard]] std::size_t one_trip_bytes() const noexcept override { return one_trip_bytes_; }
  void set_one_trip_bytes(std::size_t bytes) noexcept override { one_trip_bytes_ = bytes; }
  Exchanged exchange(const Card& card, const void* payload, std::size_t bytes) override;
  [[nodiscard]] bool carries(std::size_t count, DataType type) const noexcept override;
  Exchanged exchange_and_allreduce(const Card& card, const void* input, void* output,
                                   std::size_t count, const Reduction& how) override;
  void allreduce(const void* input, void* output, std::size_t count, const Reduction& how) override;
  void reducescatter(const void* input, void* output, std::span<const std::size_t> counts,
                     const Reduction& how) override;
  void allgather(const void* input, void* output, std::span<const std::size_t> bytes) override;
  void broadcast(void* data, std::size_t bytes, int root) override;
  void alltoall(const void* input, std::span<const std::size_t> send_bytes, void* output,
                std::span<const std::size_t> recv_bytes) override;
  void send(int to, std::span<const std::byte> header, const void* data,
            std::size_t bytes) override;
  std::size_t recv_header(int from, std::span<std::byte> header) override;
  void recv_body(int from, void* data, std::size_t bytes) override;
  std::unique_ptr<Group> subset(const std::vector<int>& members) override;

  // --- for HierarchicalGroup ---------------------------------------------------------------------
  /// Small messages of any content; see Messenger::exchange_small.
  void exchange_rows(std::span<const Messenger::SmallMessage> mine, void* all, std::size_t stride);
  /// Everybody's slice of `data` (slices.h) reaches the others.
  void share_slices(void* data, std::size_t count, std::size_t element_bytes);
  /// What a member sends to each of the others at a meeting, at the most.
  [[nodiscard]] static std::size_t most_sent_eagerly(int members) noexcept;

  /// A block for or from a member.
  struct Block {
    int member;
    std::byte* data;
    std::size_t bytes;
  };
  /// Moves blocks between members, all at once. Empty ones do not travel.
  void move(std::span<const Block> outgoing, std::span<const Block> incoming);

 private:
  friend class WireReduction;

  enum Tag : std::uint32_t { kPart = 1, kResult, kBlock, kEnvelope, kBody };
  using Tickets = std::vector<Messenger::Ticket>;

  Messenger::Ticket post_send(int member, Tag tag, const void* data, std::size_t bytes);
  Messenger::Ticket post_recv(int member, Tag tag, void* data, std::size_t bytes);
  void wait(Messenger::Ticket ticket) { link_->messenger().wait(ticket, link_->deadline()); }
  void wait_all(Tickets& tickets);

  [[nodiscard]] std::size_t row_bytes() const noexcept;
  /// Where everybody's card and payload arrive.
  std::byte* rows();
  /// Meets all, showing outgoing_.
  Exchanged meet(const Card& card);
  void broadcast_scattered(std::byte* data, std::size_t bytes, int root);
  void drop_finished_copies();

  std::shared_ptr<WireLink> link_;
  const std::vector<int> members_;  // members of the link
  const ConnectWire connect_;
  std::size_t one_trip_bytes_;
  int subsets_ = 0;

  std::vector<Messenger::SmallMessage> outgoing_;  // of a meeting, by member
  WireScratch sliced_;                             // where they are, if each is another
  WireScratch rows_;                               // of exchange()
  std::vector<const std::byte*> row_of_;           // in rows_
  WireScratch parts_;                              // of reductions
  WireScratch dropped_;                            // bodies that nobody wants

  /// A short send that was copied so that it need not wait.
  struct Copy {
    Messenger::Ticket ticket;
    std::vector<std::byte> bytes;
  };
  std::list<Copy> copies_;
};

}  // namespace kolo::comm
