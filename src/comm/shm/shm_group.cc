// A meeting: each member writes its card and payload into one of two slots of its seat and then
// publishes the number of the meeting; it then waits until all others have published that number.
// Two slots, used in turn, are enough: a member that begins meeting k + 2 has seen everybody in
// meeting k + 1, and whoever is there has read everything of meeting k.
//
// A wait that has to sleep looks around first (look): if a member that is still needed is gone or
// has given up, the wait ends with peer_lost. A member that gives up leaves the number of the one
// it waited for in its seat, so that the others can follow the chain to the rank that caused it.
#include "comm/shm/shm_group.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/errors.h"
#include "base/interrupt.h"
#include "comm/shm/late_process.h"

namespace kolo::comm {
namespace {

// Values of Seat::gone.
constexpr std::uint32_t kLeft = 1;
constexpr std::uint32_t kGaveUp = 2;  // + member

/// In place of the offset of a seat: there is no memory for it.
constexpr std::uint64_t kNoPlace = ~std::uint64_t{0};

/// Where Exchanged finds things, relative to a slot.
constexpr Exchanged::Layout layout_of(std::size_t parity) {
  return {.card = offsetof(Seat, cards) + parity * sizeof(CardSlot) - parity * sizeof(Slot),
          .small = offsetof(Slot, small),
          .small_limit = kSmallPayload,
          .large = offsetof(Seat, eager) + parity * kEagerPayload - parity * sizeof(Slot)};
}
static_assert(offsetof(Seat, slots) == 0);

}  // namespace

void RetiredSeats::add(Seat* seat, int members) {
  {
    MutexLock lock(mutex_);
    seats_.emplace_back(seat, members);
  }
  sweep();
}

// A seat is freed only when all other members have said farewell: until then one of them may read
// it.
void RetiredSeats::sweep() {
  MutexLock lock(mutex_);
  std::erase_if(seats_, [&](const auto& entry) {
    const auto [seat, members] = entry;
    if (static_cast<int>(seat->farewells.load(std::memory_order_acquire)) < members - 1)
      return false;
    arena_->release(seat);
    return true;
  });
}

ShmGroup::ShmGroup(int rank, std::vector<Member> members, std::shared_ptr<Arena> arena,
                   std::shared_ptr<RetiredSeats> retired, std::shared_ptr<Liveness> liveness,
                   Options options)
    : Group(rank, static_cast<int>(members.size())),
      members_(std::move(members)),
      arena_(std::move(arena)),
      retired_(std::move(retired)),
      liveness_(std::move(liveness)),
      options_(options),
      waiter_(options.crowded) {
  for (std::size_t parity : {0, 1})
    for (const Member& member : members_)
      rows_[parity].push_back(reinterpret_cast<const std::byte*>(&member.seat->slots[parity]));
  listener_ = liveness_->listen([this](const Departure&) { waiter_.rouse(); });
}

ShmGroup::~ShmGroup() {
  liveness_->unlisten(listener_);
  // Whoever leaves after a loss leaves because of it.
  if (liveness_->any_departed())
    for (int r = 0; r < size(); ++r)
      if (r != this->rank() && liveness_->departure_of(members_[r].world_rank)) give_up(r);
  std::uint32_t present = 0;
  mine().gone.compare_exchange_strong(present, kLeft);
  // A slower member may still be reading this seat, and this member is the last to keep a seat of
  // another from being freed: that one's owner waits for our farewell, and we for theirs.
  for (int r = 0; r < size(); ++r)
    if (r != this->rank()) seat(r).farewells.fetch_add(1, std::memory_order_release);
  retired_->add(&mine(), size());
}

// --- meetings ------------------------------------------------------------------------------------

Exchanged ShmGroup::exchange(const Card& card, const void* payload, std::size_t bytes) {
  post(card, payload, bytes);
  return take_up();
}

void ShmGroup::post(const Card& card, const void* payload, std::size_t bytes) {
  check_usable();
  const std::uint64_t meeting = ++meeting_;
  const std::size_t parity = meeting & 1;
  Slot& slot = mine().slots[parity];
  slot.signature = posted_signature_ = card.signature;
  Card& shown = mine().cards[parity].card;
  shown = card;
  shown.input = shared_place(card.input);
  shown.output = shared_place(card.output);
  if (bytes <= kSmallPayload) {
    if (bytes != 0) std::memcpy(slot.small, payload, bytes);
  } else {
    KOLO_CHECK(bytes <= kEagerPayload);
    std::memcpy(mine().eager[parity], payload, bytes);
  }
  Waiter::publish(slot.sequence, meeting, mine().slot_sleepers);
}

bool ShmGroup::all_posted() const noexcept {
  for (int r = 0; r < size(); ++r)
    if (seat(r).slots[meeting_ & 1].sequence.load(std::memory_order_acquire) < meeting_)
      return false;
  return true;
}

Exchanged ShmGroup::take_up() {
  const std::uint64_t meeting = meeting_;
  const std::size_t parity = meeting & 1;
  bool agreed = true;
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    Slot& other = seat(r).slots[parity];
    wait_word(other.sequence, seat(r).slot_sleepers, meeting, r, [&](int member) {
      return seat(member).slots[parity].sequence.load(std::memory_order_acquire) >= meeting;
    });
    agreed = agreed && other.signature == posted_signature_;
  }
  // Everybody is past the other slot by now. Taking its line back before it is needed saves the
  // next meeting one of its two trips between the cores.
  Waiter::take_line(&mine().slots[1 - parity]);
  return {rows_[parity].data(), layout_of(parity), agreed};
}

// --- steps ---------------------------------------------------------------------------------------

void ShmGroup::signal() { Waiter::publish(mine().steps.value, ++step_, mine().steps.sleepers); }

void ShmGroup::wait_step(int member, std::uint64_t step) {
  Signal& steps = seat(member).steps;
  wait_word(steps.value, steps.sleepers, step, member, [&](int other) {
    return seat(other).steps.value.load(std::memory_order_acquire) >= last_step_;
  });
}

void ShmGroup::wait_all(std::uint64_t step) {
  for (int r = 0; r < size(); ++r)
    if (r != rank()) wait_step(r, step);
}

void ShmGroup::sync() {
  signal();
  wait_all(step_);
  Waiter::take_line(&mine().steps.value);  // as in exchange()
}

std::uint64_t ShmGroup::agree_on_largest(std::uint64_t number) {
  mine().hint = number;
  last_step_ = step_ + 1;
  sync();
  for (int r = 0; r < size(); ++r) number = std::max(number, seat(r).hint);
  return number;
}

// --- failure -------------------------------------------------------------------------------------

template <class HasArrived>
void ShmGroup::look(int member, Deadline deadline, HasArrived has_arrived) {
  // Everybody this operation still needs must be there, not just the one waited for now: the others
  // wait for the lost one too and will not come.
  for (int r = 0; r < size(); ++r) {
    if (r == rank() || has_arrived(r)) continue;
    const std::uint32_t gone = seat(r).gone.load(std::memory_order_acquire);
    std::optional<std::string> reason;
    if (liveness_->any_departed()) reason = liveness_->departure_of(members_[r].world_rank);
    if (gone == 0 && !reason) continue;
    // A member that gave up and went is not the one to name, but the one it gave up.
    const int cause = root_of_loss(r);
    if (cause == rank())
      fail(r, fmt::format("{} waited too long for this rank and gave it up", describe_member(r)));
    if (cause != r) {
      reason = liveness_->departure_of(members_[cause].world_rank);
      fail(cause, fmt::format("{}: {}", describe_member(cause),
                              reason.value_or(fmt::format("did not arrive, as {} found out",
                                                          describe_member(r)))));
    }
    fail(r, fmt::format("{}: {}", describe_member(r), reason.value_or("has left")));
  }
  if (deadline.passed()) {
    member = furthest_behind(member, has_arrived);
    fail(member, fmt::format("{} did not arrive within {:g} s (KOLO_TIMEOUT_SECONDS); {}",
                             describe_member(member),
                             std::chrono::duration<double>(options_.timeout).count(),
                             why_late(members_[member].segment->owner())));
  }
}

template <class HasArrived>
int ShmGroup::furthest_behind(int member, HasArrived has_arrived) const {
  const auto progress = [&](int r) {
    const Seat& other = seat(r);
    return std::pair(std::max(other.slots[0].sequence.load(std::memory_order_acquire),
                              other.slots[1].sequence.load(std::memory_order_acquire)),
                     other.steps.value.load(std::memory_order_acquire));
  };
  for (int r = 0; r < size(); ++r)
    if (r != rank() && !has_arrived(r) && progress(r) < progress(member)) member = r;
  return member;
}

int ShmGroup::root_of_loss(int member) const {
  for (int hops = 0; hops < size(); ++hops) {
    const std::uint32_t gone = seat(member).gone.load(std::memory_order_acquire);
    if (gone < kGaveUp) break;
    member = static_cast<int>(gone - kGaveUp);
    if (member == rank()) break;
  }
  return member;
}

std::string ShmGroup::describe_member(int member) const {
  return fmt::format("rank {} (process {})", members_[member].world_rank,
                     members_[member].segment->owner());
}

template <class HasArrived>
void ShmGroup::wait_word(const std::atomic<std::uint64_t>& word,
                         std::atomic<std::uint32_t>& sleepers, std::uint64_t target, int member,
                         HasArrived has_arrived) {
  std::optional<Deadline> deadline;  // the clock is read only by waits that get to sleep
  waiter_.wait(word, target, sleepers, [&] {
    throw_if_interrupted();
    if (!deadline) deadline = Deadline::after(options_.timeout);
    look(member, *deadline, has_arrived);
  });
}

void ShmGroup::wait_signal(Signal& signal, std::uint64_t target, int member) {
  wait_word(signal.value, signal.sleepers, target, member,
            [&](int other) { return other != member; });
}

void ShmGroup::fail(int member, const std::string& why) {
  broken_ = Error(ErrorCode::peer_lost, why, member);
  give_up(member);
  throw *broken_;
}

std::optional<int> ShmGroup::lost_member() const {
  if (!liveness_->any_departed()) return std::nullopt;
  // Who was lost first is the cause; the others may have gone because of it.
  for (const Departure& departure : liveness_->departures())
    for (int r = 0; r < size(); ++r)
      if (r != rank() && members_[r].world_rank == departure.rank) return r;
  return std::nullopt;
}

void ShmGroup::give_up(int member) noexcept {
  std::uint32_t present = 0;
  mine().gone.compare_exchange_strong(present, kGaveUp + static_cast<std::uint32_t>(member));
}

void ShmGroup::check_usable() const {
  if (broken_) [[unlikely]]
    throw *broken_;
}

// --- own memory ----------------------------------------------------------------------------------

// Addresses differ between processes, so cards carry offsets into the owner's segment, plus 1; 0
// means that the memory is not in the segment.
std::uint64_t ShmGroup::shared_place(std::uint64_t address) const noexcept {
  const auto base = reinterpret_cast<std::uint64_t>(arena_->segment()->base());
  const std::uint64_t offset = address - base;
  return offset < arena_->segment()->bytes() ? offset + 1 : 0;
}

std::byte* ShmGroup::peer_input(int member) const noexcept {
  const std::uint64_t place = seat(member).cards[meeting_ & 1].card.input;
  return place == 0 ? nullptr : members_[member].segment->base() + place - 1;
}

std::byte* ShmGroup::peer_output(int member) const noexcept {
  const std::uint64_t place = seat(member).cards[meeting_ & 1].card.output;
  return place == 0 ? nullptr : members_[member].segment->base() + place - 1;
}

bool ShmGroup::all_inputs_shared() const noexcept {
  for (int r = 0; r < size(); ++r)
    if (seat(r).cards[meeting_ & 1].card.input == 0) return false;
  return true;
}

bool ShmGroup::all_outputs_shared() const noexcept {
  for (int r = 0; r < size(); ++r)
    if (seat(r).cards[meeting_ & 1].card.output == 0) return false;
  return true;
}

// A quarter of the data, so that the copies of one chunk overlap with the reduction of another, but
// at least 32 KiB to pay for the steps and at most 256 KiB to stay in the cache.
std::size_t ShmGroup::stage_chunk_bytes(std::size_t bytes) noexcept {
  constexpr std::size_t kSmallest = 32 * 1024;
  constexpr std::size_t kLargest = 256 * 1024;
  static_assert(kLargest <= kStageBytes);
  return std::clamp(bytes / 4 / 64 * 64, kSmallest, kLargest);
}

// --- making groups -------------------------------------------------------------------------------

std::unique_ptr<Group> ShmGroup::subset(const std::vector<int>& chosen) {
  const auto me = std::find(chosen.begin(), chosen.end(), rank());
  Seat* my_seat = nullptr;
  std::uint64_t place = kNoPlace;
  std::optional<Error> no_place;
  retired_->sweep();
  if (me != chosen.end()) {
    // Whoever has no memory left comes to the meeting nevertheless: the others wait there.
    try {
      my_seat = new (arena_->reserve(Seat::bytes_for(static_cast<int>(chosen.size())))) Seat;
      place = arena_->offset_of(my_seat);
    } catch (const Error& error) {
      no_place = error;
    }
  }
  Card card;
  card.signature = 1;  // the caller has checked that all want the same subset
  card.kind = OpKind::subset;
  const Exchanged all = exchange(card, &place, sizeof place);
  std::vector<Member> members;
  for (int r : chosen) {
    std::uint64_t offset;
    std::memcpy(&offset, all.payload(r, sizeof offset), sizeof offset);
    if (offset == kNoPlace) {
      if (my_seat != nullptr) arena_->release(my_seat);
      if (no_place) throw *no_place;
      throw_error(ErrorCode::unavailable,
                  "subset: rank {} has no shared memory left; free buffers there, or raise "
                  "KOLO_SHARED_MEMORY_BYTES",
                  members_[r].world_rank);
    }
    Member member = members_[r];
    member.seat = reinterpret_cast<Seat*>(member.segment->base() + offset);
    members.push_back(std::move(member));
  }
  if (my_seat == nullptr) return nullptr;
  return std::make_unique<ShmGroup>(static_cast<int>(me - chosen.begin()), std::move(members),
                                    arena_, retired_, liveness_, options_);
}

std::unique_ptr<Group> make_shm_group(Bootstrap& bootstrap, const std::vector<int>& ranks,
                                      std::shared_ptr<Arena> arena,
                                      std::shared_ptr<Liveness> liveness, ShmGroup::Options options,
                                      Deadline deadline) {
  struct Introduction {
    Segment::Ticket segment;
    std::uint64_t seat = 0;
    cpu_set_t cores{};  // where this rank may run
  } mine;
  const int members = static_cast<int>(ranks.size());
  auto* my_seat = new (arena->reserve(Seat::bytes_for(members))) Seat;
  mine.segment = arena->segment()->ticket();
  mine.seat = arena->offset_of(my_seat);
  ::sched_getaffinity(0, sizeof mine.cores, &mine.cores);

  const auto introductions = bootstrap.allgather(
      "shm", ranks, {reinterpret_cast<const char*>(&mine), sizeof mine}, deadline);

  std::vector<ShmGroup::Member> all;
  cpu_set_t cores{};
  int me = -1;
  for (int i = 0; i < members; ++i) {
    const std::string whose = fmt::format("rank {}", ranks[i]);
    Introduction theirs;
    if (introductions[i].size() != sizeof theirs)
      throw_error(ErrorCode::corruption,
                  "shared memory of {}: its introduction has {} bytes; run all ranks with the same "
                  "version of kolo",
                  whose, introductions[i].size());
    std::memcpy(&theirs, introductions[i].data(), sizeof theirs);
    if (ranks[i] == bootstrap.topology().rank()) me = i;
    CPU_OR(&cores, &cores, &theirs.cores);
    // Watch first: a process that can still be attached after that is the one being watched.
    liveness->watch(ranks[i], theirs.segment.pid);
    auto segment = Segment::attach(theirs.segment, whose);
    auto* seat = reinterpret_cast<Seat*>(segment->base() + theirs.seat);
    all.push_back({ranks[i], std::move(segment), seat});
  }
  // Nobody may leave before all have attached: a rank that is done at once takes its segment along.
  bootstrap.allgather("shm/attached", ranks, "", deadline);
  options.crowded = CPU_COUNT(&cores) < members;
  auto retired = std::make_shared<RetiredSeats>(arena);
  return std::make_unique<ShmGroup>(me, std::move(all), std::move(arena), std::move(retired),
                                    std::move(liveness), options);
}

}  // namespace kolo::comm
