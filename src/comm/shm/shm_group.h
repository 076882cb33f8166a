// Collectives inside a host, through shared memory.
//
// Vocabulary: a *seat* is a member's part of the shared state (layout.h); a *meeting* is one
// exchange(); a *step* is one signal inside a bulk operation. All members take the same steps in
// the same order, so a step is a number and waiting for a member is waiting for its counter.
//
// Costs, n members, N bytes each:
//   exchange        1 meeting: each member writes 1–2 cache lines and reads n-1
//   allreduce, own  meeting + 1 step; each member reads n·N/n bytes and writes n·N/n in place
//   allreduce       meeting + 2 steps per chunk; (n-1)/n·N copied in, (n-1)/n·N copied out
//   others, own     meeting + 1 step, data read straight from the peers' buffers
//   others          meeting + 1 step per chunk, one copy into the stage
//
// Failure: whoever waits looks, before each sleep, whether a member that the operation still needs
// is gone, and throws peer_lost. The group is then broken and says so at every later call.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "comm/group.h"
#include "comm/liveness.h"
#include "comm/shm/arena.h"
#include "comm/shm/layout.h"
#include "comm/shm/waiter.h"
#include "kolo/error.h"

namespace kolo::comm {

/// Seats of groups that are over, until the other members have left them too.
class RetiredSeats {
 public:
  explicit RetiredSeats(std::shared_ptr<Arena> arena) : arena_(std::move(arena)) {}
  /// Takes over a seat whose group had `members` members.
  void add(Seat* seat, int members);
  /// Frees the seats that nobody looks at any more.
  void sweep();

 private:
  std::shared_ptr<Arena> arena_;
  Mutex mutex_;
  std::vector<std::pair<Seat*, int>> seats_ KOLO_GUARDED_BY(mutex_);
};

class ShmGroup final : public Group {
 public:
  /// One member as this process sees it.
  struct Member {
    int world_rank = -1;
    std::shared_ptr<Segment> segment;
    Seat* seat = nullptr;
  };
  struct Options {
    std::chrono::milliseconds timeout{0};
    bool crowded = false;  ///< more ranks than cores: set by make_shm_group
  };

  ShmGroup(int rank, std::vector<Member> members, std::shared_ptr<Arena> arena,
           std::shared_ptr<RetiredSeats> retired, std::shared_ptr<Liveness> liveness,
           Options options);
  ~ShmGroup() override;

  [[nodiscard]] std::string describe() const override { return "shm"; }
  [[nodiscard]] std::chrono::milliseconds timeout() const noexcept override {
    return options_.timeout;
  }
  void give_up(int member) noexcept override;
  [[nodiscard]] std::optional<int> lost_member() const override;
  [[nodiscard]] std::size_t eager_bytes() const noexcept override { return kEagerPayload; }

  Exchanged exchange(const Card& card, const void* payload, std::size_t bytes) override;

  [[nodiscard]] bool can_post() const noexcept override { return true; }
  void post(const Card& card, const void* payload, std::size_t bytes) override;
  [[nodiscard]] bool all_posted() const noexcept override;
  void await_posted() override { take_up(); }
  Exchanged take_up() override;
  void reduce_own_part(std::size_t count, const Reduction& how) override;

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
  // --- synchronisation (shm_group.cc) ---
  [[nodiscard]] Seat& seat(int member) const noexcept { return *members_[member].seat; }
  [[nodiscard]] Seat& mine() const noexcept { return seat(rank()); }
  /// Takes the next step / waits until a member, or all, have taken as many as this one.
  void signal();
  void wait_step(int member, std::uint64_t step);
  void wait_all(std::uint64_t step);
  /// signal() and wait_all(): nobody leaves before everybody came.
  void sync();
  void wait_signal(Signal& signal, std::uint64_t target, int member);
  /// Waits for a word of `member`. `has_arrived(m)` says whether the operation still needs m.
  template <class HasArrived>
  void wait_word(const std::atomic<std::uint64_t>& word, std::atomic<std::uint32_t>& sleepers,
                 std::uint64_t target, int member, HasArrived has_arrived);
  /// Throws if the wait for `member` cannot end well; see "Failure" above.
  template <class HasArrived>
  void look(int member, Deadline deadline, HasArrived has_arrived);
  /// The member that the others wait for, directly or not: the one with the least behind it.
  template <class HasArrived>
  [[nodiscard]] int furthest_behind(int member, HasArrived has_arrived) const;
  /// Follows who gave whom up, from `member` to the one that was lost first.
  [[nodiscard]] int root_of_loss(int member) const;
  [[nodiscard]] std::string describe_member(int member) const;
  [[noreturn]] void fail(int member, const std::string& why);
  void check_usable() const;

  // --- own memory ---
  /// Offset in this rank's segment plus one, or 0 for memory from anywhere.
  [[nodiscard]] std::uint64_t shared_place(std::uint64_t address) const noexcept;
  /// Address of a member's input / output of the current operation; null if not shared.
  [[nodiscard]] std::byte* peer_input(int member) const noexcept;
  [[nodiscard]] std::byte* peer_output(int member) const noexcept;
  [[nodiscard]] bool all_inputs_shared() const noexcept;
  [[nodiscard]] bool all_outputs_shared() const noexcept;
  /// Every member says a number; returns the largest. One step.
  std::uint64_t agree_on_largest(std::uint64_t mine);

  // --- bulk paths (shm_allreduce.cc, shm_move.cc) ---
  void allreduce_in_place(std::size_t count, const Reduction& how);
  void allreduce_staged(const std::byte* input, std::byte* output, std::size_t count,
                        const Reduction& how);
  /// How much to stage at a time: enough chunks that members work at once, few enough signals.
  [[nodiscard]] static std::size_t stage_chunk_bytes(std::size_t bytes) noexcept;
  /// Moves blocks for each member through the stages: in each round, every member lays down a
  /// piece for every other one, then take(start, my_length, laid_by, length_from) reads them:
  /// laid_by(r) is the piece from r, which begins `start` bytes into r's block for this member.
  template <class Take>
  void exchange_blocks(const std::byte* input, std::span<const std::size_t> send_bytes,
                       std::span<const std::size_t> recv_bytes, std::size_t unit, Take take);

  // --- point to point (shm_channel.cc) ---
  void write_channel(int to, const void* data, std::size_t bytes);
  void read_channel(int from, void* data, std::size_t bytes);

  std::vector<Member> members_;
  std::vector<const std::byte*> rows_[2];  // the members' slots, by parity, for Exchanged
  std::shared_ptr<Arena> arena_;
  std::shared_ptr<RetiredSeats> retired_;
  std::shared_ptr<Liveness> liveness_;
  Options options_;
  Waiter waiter_;
  int listener_ = -1;          // hears of lost ranks
  std::uint64_t meeting_ = 0;  // number of the last meeting
  // Of that meeting. Its line in shared memory is on its way to the others.
  std::uint64_t posted_signature_ = 0;
  std::uint64_t step_ = 0;       // steps taken by this member
  std::uint64_t last_step_ = 0;  // steps taken once the current bulk operation is over
  std::optional<Error> broken_;
  std::vector<const void*> inputs_;  // scratch of the current operation
  std::vector<void*> outputs_;
};

/// Meets the other ranks of this host through `bootstrap` and makes their group. `ranks` are world
/// ranks, ascending. Collective over them.
std::unique_ptr<Group> make_shm_group(Bootstrap& bootstrap, const std::vector<int>& ranks,
                                      std::shared_ptr<Arena> arena,
                                      std::shared_ptr<Liveness> liveness, ShmGroup::Options options,
                                      Deadline deadline);

}  // namespace kolo::comm
