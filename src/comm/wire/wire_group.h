// A Group whose members talk through a Messenger, each with each.
//
// The algorithms are written once for all wires, and the order of summation is that of the members,
// so the bits of a result depend on the inputs and their order alone. docs/transports.md counts
// steps and bytes.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/group.h"
#include "comm/wire/wire.h"

namespace kolo::comm {

/// Memory for messages: aligned, not initialised, grows.
class Scratch {
 public:
  /// At least `bytes`, 64-byte aligned. Contents are lost when it grows.
  std::byte* get(std::size_t bytes);

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t bytes_ = 0;
};

/// Why an operation failed, in the numbering of the world.
struct Loss {
  int world_rank = -1;
  std::string reason;
};

class WireGroup final : public Group {
 public:
  /// `watched`: world ranks whose death ends this group, members or not; empty = the members.
  WireGroup(std::unique_ptr<Messenger> messenger, int me, ConnectWire connect, WireOptions options,
            std::vector<int> watched = {});
  ~WireGroup() override;

  [[nodiscard]] std::string describe() const override { return options_.name; }
  [[nodiscard]] std::size_t eager_bytes() const noexcept override;
  Exchanged exchange(const Card& card, const void* payload, std::size_t bytes) override;
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
  void exchange_rows(const void* mine, std::size_t bytes, void* all, std::size_t stride);

  /// What ended this group, once an operation has thrown peer_lost.
  [[nodiscard]] const std::optional<Loss>& loss() const noexcept { return loss_; }

 private:
  friend class WireReduction;

  enum Tag : std::uint32_t { kPart = 1, kResult, kBlock, kEnvelope, kBody };

  /// Runs `action`; what the messenger throws becomes peer_lost of this group, naming the world
  /// rank. Once that happened every call throws the same.
  template <class Action>
  void guarded(const char* operation, Action&& action);
  [[noreturn]] void throw_lost(const char* operation) const;
  Loss find_cause(const Error& error);
  void on_departure(const Departure& departure);

  [[nodiscard]] Deadline deadline() const { return Deadline::after(options_.timeout); }
  void wait(Messenger::Ticket ticket) { messenger_->wait(ticket, deadline()); }
  void wait_all(std::vector<Messenger::Ticket>& tickets);

  std::unique_ptr<Messenger> messenger_;
  const ConnectWire connect_;
  const WireOptions options_;
  const std::vector<int> watched_;
  int subsets_ = 0;
  std::optional<Loss> loss_;

  Scratch rows_;     // of exchange()
  Scratch parts_;    // of reductions
  Scratch dropped_;  // bodies that nobody wants

  /// A short send that was copied so that it need not wait.
  struct Copy {
    Messenger::Ticket ticket;
    std::vector<std::byte> bytes;
  };
  std::list<Copy> copies_;
  void drop_finished_copies();

  // Departures: told on another thread.
  int listener_ = -1;
  std::mutex departures_mutex_;
  std::condition_variable departures_changed_;
  std::optional<Departure> unclean_;  // guarded by departures_mutex_
  bool is_closing_ = false;           // guarded by departures_mutex_
  std::thread grace_;                 // guarded by departures_mutex_ until closing
};

}  // namespace kolo::comm
