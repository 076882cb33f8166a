#include "support/memory_messenger.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "base/errors.h"
#include "comm/wire/statements.h"

namespace kolo::test {
namespace {

using comm::Messenger;
using comm::Statements;
using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kExchangeTag = 1U << 20;

/// One set of members.
struct Room {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::tuple<int, int, std::uint32_t>, std::deque<Bytes>> queues;  // from, to, tag
  std::vector<bool> has_left;
  std::map<int, int> farewells;  // member → whom it gave up
};

struct Receive {
  int peer;
  std::uint32_t tag;
  void* data;
  std::size_t bytes;
};

class MemoryMessenger final : public Messenger {
 public:
  MemoryMessenger(std::shared_ptr<Room> room, int me, int size)
      : room_(std::move(room)), me_(me), size_(size) {}

  ~MemoryMessenger() override {
    std::lock_guard lock(room_->mutex);
    room_->has_left[me_] = true;
    room_->changed.notify_all();
  }

  Ticket post_send(int peer, std::uint32_t tag, const void* data, std::size_t bytes) override {
    std::lock_guard lock(room_->mutex);
    throw_if_broken();
    const auto* from = static_cast<const std::byte*>(data);
    room_->queues[{me_, peer, tag}].emplace_back(from, from + bytes);
    room_->changed.notify_all();
    return ++last_ticket_;
  }

  Ticket post_recv(int peer, std::uint32_t tag, void* data, std::size_t bytes) override {
    std::lock_guard lock(room_->mutex);
    throw_if_broken();
    receives_[++last_ticket_] = {peer, tag, data, bytes};
    return last_ticket_;
  }

  void wait(Ticket ticket, Deadline deadline) override {
    std::unique_lock lock(room_->mutex);
    const auto it = receives_.find(ticket);
    if (it == receives_.end()) return throw_if_broken();  // a send, or completed by a later wait
    // Receives of one pair and tag take messages in the order in which they were posted.
    for (auto earlier = receives_.begin(); earlier != std::next(it);) {
      if (earlier->second.peer == it->second.peer && earlier->second.tag == it->second.tag) {
        const Receive receive = earlier->second;
        const Bytes message = take(lock, receive.peer, receive.tag, deadline);
        if (message.size() != receive.bytes)
          throw_error(ErrorCode::internal, "{} bytes came where {} were expected", message.size(),
                      receive.bytes);
        if (!message.empty()) std::memcpy(receive.data, message.data(), message.size());
        const bool is_last = earlier == it;
        earlier = receives_.erase(earlier);
        if (is_last) break;
      } else {
        ++earlier;
      }
    }
  }

  bool test(Ticket ticket) override {
    std::lock_guard lock(room_->mutex);
    throw_if_broken();
    return receives_.find(ticket) == receives_.end();
  }

  void exchange_small(std::span<const int> members, std::span<const SmallMessage> mine, void* all,
                      std::size_t stride, Deadline deadline) override {
    for (std::size_t i = 0; i < members.size(); ++i)
      if (members[i] != me_) post_send(members[i], kExchangeTag, mine[i].data(), mine[i].size());
    auto* row = static_cast<std::byte*>(all);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const int member = members[i];
      if (member == me_) {
        if (row != mine[i].data()) std::memcpy(row, mine[i].data(), mine[i].size());
      } else {
        std::unique_lock lock(room_->mutex);
        const Bytes message = take(lock, member, kExchangeTag, deadline);
        KOLO_CHECK(message.size() <= stride);
        std::memcpy(row, message.data(), message.size());
      }
      row += stride;
    }
  }

  void abort(int peer, const std::string& reason) noexcept override {
    std::lock_guard lock(room_->mutex);
    if (!broken_) broken_.emplace(ErrorCode::peer_lost, reason, peer);
    room_->changed.notify_all();
  }

  int farewell(int suspect, Deadline deadline) noexcept override {
    std::unique_lock lock(room_->mutex);
    room_->farewells[me_] = suspect;
    room_->changed.notify_all();
    int lost = suspect;
    room_->changed.wait_until(lock, deadline.when(), [&] {
      Statements statements(size_, me_);
      for (const auto& [member, whom] : room_->farewells)
        if (member != me_) statements.hear(member, whom);
      lost = statements.blame(suspect);
      return static_cast<bool>(room_->has_left[lost]);
    });
    return lost;
  }

 private:
  void throw_if_broken() {
    if (broken_) throw *broken_;
  }

  Bytes take(std::unique_lock<std::mutex>& lock, int peer, std::uint32_t tag, Deadline deadline) {
    auto& queue = room_->queues[{peer, me_, tag}];
    const auto ends = [&] {
      return !queue.empty() || broken_ || room_->has_left[peer] || room_->farewells.contains(peer);
    };
    const bool came = room_->changed.wait_until(lock, deadline.when(), ends);
    throw_if_broken();
    if (!queue.empty()) {
      Bytes message = std::move(queue.front());
      queue.pop_front();
      return message;
    }
    broken_.emplace(ErrorCode::peer_lost,
                    came ? "it closed the connection" : "it did not answer within the timeout",
                    peer);
    throw *broken_;
  }

  std::shared_ptr<Room> room_;
  const int me_, size_;
  Ticket last_ticket_ = 0;
  std::map<Ticket, Receive> receives_;
  std::optional<Error> broken_;
};

class MemoryHub final : public MessengerHub {
 public:
  comm::ConnectWire connect(int world_rank) override {
    return [self = shared_from_this(), this, world_rank](const std::vector<int>& ranks,
                                                         const std::string& key) {
      const int me =
          static_cast<int>(std::find(ranks.begin(), ranks.end(), world_rank) - ranks.begin());
      std::lock_guard lock(mutex_);
      std::shared_ptr<Room>& room = rooms_[key];
      if (room == nullptr) {
        room = std::make_shared<Room>();
        room->has_left.assign(ranks.size(), false);
      }
      return std::make_unique<MemoryMessenger>(room, me, static_cast<int>(ranks.size()));
    };
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Room>> rooms_;  // guarded by mutex_
};

}  // namespace

std::shared_ptr<MessengerHub> MessengerHub::create() { return std::make_shared<MemoryHub>(); }

}  // namespace kolo::test
