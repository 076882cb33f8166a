// Groups over several hosts: shared memory inside, a wire across.
//
// Vocabulary: the *leader* of a host is its first rank; *lane* l connects the l-th rank of every
// host, for l below the size of the smallest host, so that all lanes cross at once and every byte
// crosses once per host. The order of summation is: ranks of a host, then hosts, both ascending.
//
// Costs, H hosts, L lanes, N bytes:
// - exchange: 2 local meetings and 1 small exchange between leaders
// - allreduce of middle size: the same two meetings; the hosts' sums cross with the cards, whole or
//   in slices that come back in a second trip
// - allreduce: local reducescatter, lanes' allreduce of N/L each, local allgather; in chunks, so
//   that the three overlap. Crossing: 2·(H-1)/H·N per host
// - broadcast: local broadcast at the root's host, lanes' broadcast of N/L each, local allgather
// - allgather: every block crosses once to each other host, then a local broadcast of each
// - alltoall: local pairs locally, the others straight across
// - reducescatter: an allreduce of which each rank keeps its part
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/group.h"
#include "comm/slices.h"
#include "comm/wire/scratch.h"
#include "comm/wire/wire.h"
#include "comm/wire/wire_group.h"
#include "comm/wire/wire_link.h"
#include "kolo/error.h"
#include "kolo/topology.h"

namespace kolo::comm {

class HierarchicalGroup final : public Group {
 public:
  HierarchicalGroup(std::unique_ptr<Group> local, const Topology& topology, ConnectWire connect,
                    const WireOptions& options);
  ~HierarchicalGroup() override;

  [[nodiscard]] std::string describe() const override { return description_; }
  [[nodiscard]] std::chrono::milliseconds timeout() const noexcept override {
    return link_->options().timeout;
  }
  void give_up(int member) noexcept override;
  [[nodiscard]] std::optional<int> lost_member() const override { return link_->lost_member(); }
  [[nodiscard]] std::size_t eager_bytes() const noexcept override { return eager_bytes_; }
  [[nodiscard]] std::size_t one_trip_bytes() const noexcept override {
    return lane_ == nullptr ? 0 : lane_->one_trip_bytes();
  }
  void set_one_trip_bytes(std::size_t bytes) noexcept override {
    if (lane_ != nullptr) lane_->set_one_trip_bytes(bytes);
  }
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

 private:
  /// A rank's contribution to an exchange as it travels; the payload follows, then padding to 16.
  struct Entry {
    std::uint64_t bytes;
    std::uint64_t reserved;
    Card card;
  };
  static std::size_t entry_bytes(std::size_t payload) {
    return sizeof(Entry) + (payload + 15) / 16 * 16;
  }

  /// The entries of a host, all together, at the most.
  static constexpr std::size_t kEntriesBytes = 16 * 1024;

  /// Memory that the ranks of this host can read, as long as there is a place for such; the heap
  /// otherwise, which costs one copy more.
  class Stage {
   public:
    explicit Stage(std::shared_ptr<SharedMemory> home) : home_(std::move(home)) {}
    ~Stage();
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;
    std::byte* get(std::size_t bytes);

   private:
    std::shared_ptr<SharedMemory> home_;
    std::byte* shared_ = nullptr;
    std::size_t bytes_ = 0;
    WireScratch heap_;
  };

  [[nodiscard]] bool is_leader() const noexcept { return local_rank_ == 0; }
  [[nodiscard]] bool is_alone() const noexcept { return neighbours().size() == 1; }
  /// The members on this host.
  [[nodiscard]] const std::vector<int>& neighbours() const noexcept { return hosts_[host_]; }
  [[nodiscard]] int local_index(int member) const;

  void check_that_all_have_place(const std::optional<Error>& mine);

  // --- failure ---
  /// Runs something of the local group's; a rank lost there is named in this group's numbers.
  template <class Action>
  void locally(Action&& action) {
    try {
      action();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::peer_lost || !error.rank()) throw;
      throw Error(ErrorCode::peer_lost, error.message(), neighbours()[*error.rank()]);
    }
  }
  /// Runs `action`. Whoever loses a rank leaves the local group, so that its neighbours do not wait
  /// for it; the link tells everybody who is to blame.
  template <class Action>
  void guarded(std::string_view operation, Action&& action) {
    link_->guarded(operation, [&] {
      try {
        action();
      } catch (const Error& error) {
        if (error.code() == ErrorCode::peer_lost) local_.reset();
        throw;
      }
    });
  }

  // --- meetings (hierarchical_meeting.cc) ---
  /// In front of what a leader sends to another; the entries of its host's ranks follow, and what
  /// the other shall have of the host's sum.
  struct MessageHead {
    std::uint64_t entry_bytes = 0;
    std::uint64_t reserved = 0;
  };
  struct LocalMeeting {
    std::size_t entry_bytes = 0;  ///< of all entries, on the leader
    bool agreed = true;           ///< this host's ranks among themselves
  };
  LocalMeeting gather_entries(const Card& card, const void* payload, std::size_t bytes,
                              const void* data);
  std::size_t swap_messages(std::span<const Messenger::SmallMessage> messages);
  std::size_t hand_out(std::size_t table_bytes, const void* result);
  void find_entries(std::size_t table_bytes);
  [[nodiscard]] Exchanged exchanged(const Card& card) const;
  /// To and from a leader.
  std::byte* message_to(std::size_t host);
  std::byte* message_from(std::size_t host) { return message_to(hosts_.size() + host); }
  [[nodiscard]] Slice carried_slice(std::size_t host, std::size_t count, std::size_t element) const;
  std::vector<Messenger::SmallMessage> messages_with_sum(const LocalMeeting& met,
                                                         const std::byte* sum, std::size_t count,
                                                         std::size_t element);
  void reduce_across(std::byte* sum, std::byte* result, std::size_t count, DataType type,
                     const Reduction& how);

  /// The two halves of a reduction. 16-bit floats are float32 in between, else the sums of an
  /// average could overflow on the way.
  struct Halves {
    Reduction within_host, across_hosts;
  };
  static Halves halves_of(const Reduction& how);

  /// Announces a bulk operation of the local group.
  void meet_locally(const void* input, const void* output);
  void local_broadcast(void* data, std::size_t bytes, int local_root);

  std::unique_ptr<Group> local_;  // null once a rank was lost
  const std::string description_;
  const Topology topology_;
  const ConnectWire connect_;
  const std::vector<std::vector<int>> hosts_;  // members, ascending
  const int host_, local_rank_;
  int lanes_ = 1;
  std::shared_ptr<WireLink> link_;
  std::unique_ptr<WireGroup> flat_;     // everybody
  std::unique_ptr<WireGroup> leaders_;  // null unless leader
  std::unique_ptr<WireGroup> lane_;     // null if this rank is in none
  std::size_t eager_bytes_ = 0;
  int subsets_ = 0;

  std::size_t message_bytes_ = 0;          // room for a leader's message
  std::size_t carried_bytes_ = 0;          // of a sum, in one
  WireScratch messages_;                   // of leaders
  Stage table_;                            // all entries, after an exchange
  std::vector<const std::byte*> entries_;  // in table_, by rank
  Stage partial_;                          // sums of this host
  WireScratch wide_;                       // 16-bit floats as float32
  WireScratch reduced_;                    // of reducescatter
};

}  // namespace kolo::comm
