// Messages over TCP.
//
// The bytes between two members are puts: a head, and up to kSegmentBytes of one message. A short
// message is one put, a longer one several, so that a member that gives up can say so between two
// of them. What arrives goes straight into the memory that the receiver named, or aside if it has
// not named any yet. No call blocks on a socket: it is written while it has room and read when
// bytes are there, so that messages flow in both directions at once. Progress is made inside the
// calls of this class; meanwhile the kernel's socket buffers keep the wire busy.
//
// Waiting polls for a moment (a wake-up costs more than a short message takes), then sleeps.
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>

#include "base/errors.h"
#include "base/mutex.h"
#include "comm/activity.h"
#include "comm/wire/statements.h"
#include "comm/wire/tcp/mesh.h"
#include "comm/wire/tcp/wire.h"

namespace kolo::comm::tcp {
namespace {

constexpr std::uint32_t kExchangeTag = 1U << 20;
/// The last put of a member that gives up: whom.
constexpr std::uint32_t kFarewellTag = kExchangeTag + 1;
constexpr auto kSpin = std::chrono::microseconds(100);

/// Largest part of a message in one put. With its head it fits into two packets of segmentation
/// offload (64 KiB with headers): a little more than a whole number and every put ends with a tiny
/// packet, which takes twice the time.
constexpr std::size_t kSegmentBytes = 128'000;
/// Asked for; the kernel doubles it (and allows no more than net.core.wmem_max). More would queue
/// what the receiver has no use for yet, and push the sender's data out of its cache.
constexpr int kSocketBufferBytes = 256 * 1024;
/// Read ahead: heads, and short messages as a whole.
constexpr std::size_t kAheadBytes = 16 * 1024;

/// In front of every put.
struct PutHead {
  std::uint64_t message_left = 0;  ///< bytes of the message that have not been put before
  std::uint32_t tag = 0;
  std::uint32_t bytes = 0;  ///< of this put
};

struct Operation {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::size_t moved = 0;
  std::uint32_t tag = 0;
  bool is_exact = true;  ///< a receive that takes exactly `bytes`, not up to them
  bool is_done = false;
};
using OperationPtr = std::shared_ptr<Operation>;

/// A message that came before anybody asked for it.
struct Early {
  std::uint32_t tag;
  std::vector<std::byte> body;
};

/// The put that is on its way out.
struct Outgoing {
  PutHead head;
  const std::byte* data = nullptr;
  std::size_t sent = 0;  ///< of head and data together
  [[nodiscard]] std::size_t size() const noexcept { return sizeof head + head.bytes; }
  [[nodiscard]] bool is_under_way() const noexcept { return sent < size(); }
};

struct Peer {
  Fd socket;
  std::deque<OperationPtr> sends;
  Outgoing put{{}, nullptr, sizeof(PutHead)};  // at first, none
  std::deque<OperationPtr> receives;           // posted, not yet matched
  std::deque<Early> early;
  // The message whose puts are arriving.
  OperationPtr arriving;  // null: it goes to early.back()
  std::byte* target = nullptr;
  std::size_t message_left = 0, put_left = 0;
  // What was read ahead.
  std::array<std::byte, kAheadBytes> ahead;
  std::size_t ahead_begin = 0, ahead_end = 0;
  // The last message of a member that gives up.
  bool is_parting = false;
  std::int32_t given_up = -1;
  bool is_ended = false;  // closed, or said farewell
};

class TcpMessenger final : public Messenger {
 public:
  explicit TcpMessenger(const WireSetup& setup)
      : world_ranks_(setup.world_ranks),
        me_(setup.me),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        peers_(setup.world_ranks.size()),
        polls_(setup.world_ranks.size() + 1),
        statements_(static_cast<int>(setup.world_ranks.size()), setup.me) {
    if (!wake_.valid()) throw_errno("cannot create an eventfd");
    std::vector<Fd> sockets = connect_mesh(setup);
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      peers_[i].socket = std::move(sockets[i]);
      ::setsockopt(peers_[i].socket.get(), SOL_SOCKET, SO_SNDBUF, &kSocketBufferBytes,
                   sizeof kSocketBufferBytes);
    }
  }

  Ticket post_send(int peer, std::uint32_t tag, const void* data, std::size_t bytes) override {
    throw_if_broken();
    OperationPtr send = queue_send(peer, tag, data, bytes);
    while (!peers_[peer].sends.empty() && send_some(peer)) {
    }
    return remember(std::move(send));
  }

  Ticket post_recv(int peer, std::uint32_t tag, void* data, std::size_t bytes) override {
    throw_if_broken();
    return remember(post_recv_upto(peer, tag, data, bytes, true));
  }

  void wait(Ticket ticket, Deadline deadline) override {
    const OperationPtr operation = spend(ticket);
    if (!operation->is_done) progress_until([&] { return operation->is_done; }, deadline);
  }

  bool test(Ticket ticket) override {
    throw_if_broken();
    arm();
    if (::poll(polls_.data(), polls_.size(), 0) > 0) serve();
    if (!tickets_.at(ticket - first_ticket_)->is_done) return false;
    spend(ticket);
    return true;
  }

  void exchange_small(std::span<const int> members, std::span<const SmallMessage> mine, void* all,
                      std::size_t stride, Deadline deadline) override {
    throw_if_broken();
    std::vector<OperationPtr>& pending = exchange_;
    pending.clear();
    auto* row = static_cast<std::byte*>(all);
    for (std::size_t i = 0; i < members.size(); ++i, row += stride) {
      const int member = members[i];
      const auto [data, bytes] = std::pair(mine[i].data(), mine[i].size());
      if (member == me_) {
        if (data != row) std::memcpy(row, data, bytes);
        continue;
      }
      pending.push_back(post_recv_upto(member, kExchangeTag, row, stride, /*is_exact=*/false));
      OperationPtr send = queue_send(member, kExchangeTag, data, bytes);
      while (!send->is_done && send_some(member)) {
      }
      if (!send->is_done) pending.push_back(std::move(send));
    }
    progress_until(
        [&] {
          return std::all_of(pending.begin(), pending.end(),
                             [](const OperationPtr& operation) { return operation->is_done; });
        },
        deadline);
  }

  void abort(int peer, const std::string& reason) noexcept override { mark_broken(peer, reason); }

  int farewell(int suspect, Deadline deadline) noexcept override {
    mark_broken(suspect, "given up");
    for (int peer = 0; peer < static_cast<int>(peers_.size()); ++peer)
      if (peer != me_) say_farewell(peer, suspect);
    int lost = suspect;
    while (!deadline.passed()) {
      lost = statements_.blame(suspect);
      if (peers_[lost].is_ended) break;  // and will say no more
      listen(deadline);
    }
    lost = statements_.blame(suspect);
    for (Peer& peer : peers_)
      if (peer.socket.valid()) ::shutdown(peer.socket.get(), SHUT_RDWR);
    return lost;
  }

 private:
  Ticket remember(OperationPtr operation) {
    tickets_.push_back(std::move(operation));
    return first_ticket_ + tickets_.size() - 1;
  }

  OperationPtr spend(Ticket ticket) {
    OperationPtr operation = std::move(tickets_.at(ticket - first_ticket_));
    while (!tickets_.empty() && tickets_.front() == nullptr) {
      tickets_.pop_front();
      ++first_ticket_;
    }
    return operation;
  }

  // --- failure -----------------------------------------------------------------------------------

  void mark_broken(int peer, const std::string& reason) noexcept {
    {
      MutexLock lock(broken_mutex_);
      if (broken_peer_ < 0) {
        broken_peer_ = peer;
        broken_reason_ = reason;
      }
    }
    is_broken_.store(true, std::memory_order_release);
    const std::uint64_t one = 1;
    [[maybe_unused]] auto written = ::write(wake_.get(), &one, sizeof one);
  }

  void throw_if_broken() {
    if (!is_broken_.load(std::memory_order_acquire)) return;
    MutexLock lock(broken_mutex_);
    throw Error(ErrorCode::peer_lost, broken_reason_, broken_peer_);
  }

  [[noreturn]] void lose(int peer, const std::string& reason) {
    mark_broken(peer, reason);
    throw_if_broken();
    std::abort();  // not reached: it is broken
  }

  [[noreturn]] void lose_closed(int peer) {
    peers_[peer].is_ended = true;
    lose(peer, fmt::format("the connection to rank {} is closed", world_ranks_[peer]));
  }

  /// After what is left of a put that is under way, if there is room.
  void say_farewell(int index, std::int32_t suspect) noexcept {
    Peer& peer = peers_[index];
    peer.receives.clear();
    try {
      if (!peer.put.is_under_way() || push(index)) {
        peer.put = {{sizeof suspect, kFarewellTag, sizeof suspect},
                    reinterpret_cast<const std::byte*>(&suspect),
                    0};
        push(index);
      }
    } catch (const std::exception&) {
      // Gone as well; what it said before is heard below.
    }
    peer.sends.clear();
    peer.put = {{}, nullptr, sizeof(PutHead)};
    ::shutdown(peer.socket.get(), SHUT_WR);
  }

  void hear_farewell(int index) {
    Peer& peer = peers_[index];
    statements_.hear(index, peer.given_up);
    peer.is_ended = true;
    lose(index, fmt::format("rank {} has given up another rank", world_ranks_[index]));
  }

  // --- sending -----------------------------------------------------------------------------------

  OperationPtr queue_send(int peer, std::uint32_t tag, const void* data, std::size_t bytes) {
    auto send = std::make_shared<Operation>();
    send->data = static_cast<std::byte*>(const_cast<void*>(data));  // only read
    send->bytes = bytes;
    send->tag = tag;
    peers_[peer].sends.push_back(send);
    return send;
  }

  /// Writes what the socket takes of the put. True when all of it is gone.
  bool push(int index) {
    Peer& peer = peers_[index];
    Outgoing& put = peer.put;
    while (put.is_under_way()) {
      iovec parts[2];
      std::size_t count = 0;
      if (put.sent < sizeof put.head)
        parts[count++] = {reinterpret_cast<char*>(&put.head) + put.sent,
                          sizeof put.head - put.sent};
      const std::size_t body = put.sent - std::min(put.sent, sizeof put.head);
      if (body < put.head.bytes)
        parts[count++] = {const_cast<std::byte*>(put.data) + body, put.head.bytes - body};
      msghdr message{};
      message.msg_iov = parts;
      message.msg_iovlen = count;
      const ssize_t sent = ::sendmsg(peer.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) {
        put.sent += static_cast<std::size_t>(sent);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return false;
      } else if (errno != EINTR) {
        while (hear_more(index)) {  // perhaps whom it has given up
        }
        lose_closed(index);
      }
    }
    return true;
  }

  /// Moves the first message of the queue on by one put. False when the socket has no room.
  bool send_some(int index) {
    Peer& peer = peers_[index];
    Operation& send = *peer.sends.front();
    if (!peer.put.is_under_way()) {
      const std::size_t bytes = std::min(kSegmentBytes, send.bytes - send.moved);
      peer.put = {{send.bytes - send.moved, send.tag, static_cast<std::uint32_t>(bytes)},
                  send.data + send.moved,
                  0};
    }
    if (!push(index)) return false;
    send.moved += peer.put.head.bytes;
    if (send.moved == send.bytes) {
      send.is_done = true;
      peer.sends.pop_front();
    }
    return true;
  }

  // --- receiving ---------------------------------------------------------------------------------

  OperationPtr post_recv_upto(int index, std::uint32_t tag, void* data, std::size_t bytes,
                              bool is_exact) {
    Peer& peer = peers_[index];
    auto receive = std::make_shared<Operation>();
    receive->data = static_cast<std::byte*>(data);
    receive->bytes = bytes;
    receive->tag = tag;
    receive->is_exact = is_exact;
    // The last of the early ones may still be arriving: then it is not to be had yet.
    const std::size_t complete =
        peer.early.size() - (peer.message_left != 0 && peer.arriving == nullptr ? 1 : 0);
    for (std::size_t i = 0; i < complete; ++i) {
      if (peer.early[i].tag != tag) continue;
      check_size(index, *receive, peer.early[i].body.size());
      if (!peer.early[i].body.empty())
        std::memcpy(receive->data, peer.early[i].body.data(), peer.early[i].body.size());
      receive->is_done = true;
      peer.early.erase(peer.early.begin() + static_cast<std::ptrdiff_t>(i));
      return receive;
    }
    peer.receives.push_back(receive);
    return receive;
  }

  void check_size(int peer, const Operation& receive, std::size_t bytes) {
    if (receive.is_exact ? bytes == receive.bytes : bytes <= receive.bytes) return;
    lose(peer, fmt::format("rank {} sent {} bytes where {} were expected", world_ranks_[peer],
                           bytes, receive.bytes));
  }

  static OperationPtr take_receive(Peer& peer, std::uint32_t tag) {
    for (auto it = peer.receives.begin(); it != peer.receives.end(); ++it) {
      if ((*it)->tag != tag) continue;
      OperationPtr receive = *it;
      peer.receives.erase(it);
      return receive;
    }
    return nullptr;
  }

  /// Reads what is there, into its place and ahead. False if nothing is there.
  bool receive_some(int index) {
    Peer& peer = peers_[index];
    // The bytes of a head that has not come whole stay at the beginning.
    iovec parts[2];
    std::size_t count = 0;
    if (peer.put_left != 0) parts[count++] = {peer.target, peer.put_left};
    // In the middle of a long message no more than the next head, so that the rest need not be
    // copied.
    const std::size_t ahead =
        peer.message_left > peer.put_left ? sizeof(PutHead) : peer.ahead.size();
    parts[count++] = {peer.ahead.data() + peer.ahead_end, ahead - peer.ahead_end};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    ssize_t got = -1;
    do {
      got = ::recvmsg(peer.socket.get(), &message, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (got <= 0) lose_closed(index);
    const std::size_t placed = std::min(static_cast<std::size_t>(got), peer.put_left);
    peer.ahead_end += static_cast<std::size_t>(got) - placed;
    if (placed != 0) advance(index, placed);
    take_ahead(index);
    return true;
  }

  /// Moves what was read ahead to where it belongs.
  void take_ahead(int index) {
    Peer& peer = peers_[index];
    for (;;) {
      const std::size_t left = peer.ahead_end - peer.ahead_begin;
      const std::byte* from = peer.ahead.data() + peer.ahead_begin;
      if (peer.put_left != 0) {
        const std::size_t bytes = std::min(left, peer.put_left);
        if (bytes == 0) break;
        std::memcpy(peer.target, from, bytes);
        peer.ahead_begin += bytes;
        advance(index, bytes);
      } else {
        PutHead head;
        if (left < sizeof head) {
          std::memmove(peer.ahead.data(), from, left);
          peer.ahead_begin = 0;
          peer.ahead_end = left;
          return;
        }
        std::memcpy(&head, from, sizeof head);
        peer.ahead_begin += sizeof head;
        begin_put(index, head);
      }
    }
    peer.ahead_begin = peer.ahead_end = 0;
  }

  void begin_put(int index, const PutHead& head) {
    Peer& peer = peers_[index];
    if (head.tag == kFarewellTag) {
      // Between two puts of a message, perhaps; the rest of that does not come any more.
      peer.arriving = nullptr;
      peer.is_parting = true;
      peer.target = reinterpret_cast<std::byte*>(&peer.given_up);
      peer.message_left = peer.put_left = sizeof peer.given_up;
      if (head.bytes != sizeof peer.given_up) lose_damaged(index);
      return;
    }
    if (peer.message_left == 0) begin_message(index, head);
    if (head.message_left != peer.message_left || head.bytes > peer.message_left ||
        (head.bytes == 0 && peer.message_left != 0))
      lose_damaged(index);
    peer.put_left = head.bytes;
    if (head.message_left == 0) end_message(index);
  }

  [[noreturn]] void lose_damaged(int peer) {
    peers_[peer].is_ended = true;
    lose(peer, fmt::format("what rank {} sends makes no sense", world_ranks_[peer]));
  }

  void begin_message(int index, const PutHead& head) {
    Peer& peer = peers_[index];
    peer.arriving = take_receive(peer, head.tag);
    if (peer.arriving != nullptr) {
      check_size(index, *peer.arriving, head.message_left);
      peer.target = peer.arriving->data;
    } else {
      peer.early.push_back({head.tag, std::vector<std::byte>(head.message_left)});
      peer.target = peer.early.back().body.data();
    }
    peer.message_left = head.message_left;
  }

  /// So many bytes of the put are in their place.
  void advance(int index, std::size_t bytes) {
    Peer& peer = peers_[index];
    peer.target += bytes;
    peer.put_left -= bytes;
    peer.message_left -= bytes;
    if (peer.message_left == 0) end_message(index);
  }

  void end_message(int index) {
    Peer& peer = peers_[index];
    if (peer.is_parting) hear_farewell(index);
    if (peer.arriving != nullptr) {
      peer.arriving->is_done = true;
      peer.arriving = nullptr;
      return;
    }
    // A message that was put aside is complete; it may have been asked for while it arrived.
    OperationPtr receive = take_receive(peer, peer.early.back().tag);
    if (receive == nullptr) return;
    const std::vector<std::byte>& body = peer.early.back().body;
    check_size(index, *receive, body.size());
    if (!body.empty()) std::memcpy(receive->data, body.data(), body.size());
    receive->is_done = true;
    peer.early.pop_back();
  }

  // --- waiting -----------------------------------------------------------------------------------

  /// Which sockets matter now, in polls_.
  void arm() {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const Peer& peer = peers_[i];
      int events = 0;
      if (!peer.sends.empty()) events |= POLLOUT;
      if (!peer.receives.empty() || peer.arriving != nullptr) events |= POLLIN;
      polls_[i] = {events != 0 ? peer.socket.get() : -1, static_cast<short>(events), 0};
    }
    polls_.back() = {wake_.get(), POLLIN, 0};
  }

  template <class IsDone>
  void progress_until(IsDone&& is_done, Deadline deadline) {
    auto spin_end = Deadline::Clock::now() + kSpin;
    while (!is_done()) {
      throw_if_broken();
      arm();
      // The wake-up is for sleepers; is_broken_ says the same.
      int ready = ::poll(polls_.data(), peers_.size(), 0);
      if (ready == 0 && Deadline::Clock::now() >= spin_end) {
        const Asleep asleep;
        ready = ::poll(polls_.data(), polls_.size(), deadline.poll_timeout_ms());
        if (ready == 0 && deadline.passed()) give_up();
      }
      if (ready <= 0) {
        ::sched_yield();
        continue;
      }
      if (serve()) spin_end = Deadline::Clock::now() + kSpin;
    }
  }

  /// Moves what poll(2) found ready. False if that was nothing of a peer's.
  bool serve() {
    bool is_any = false;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const auto [fd, events, revents] = polls_[i];
      if (revents == 0) continue;
      is_any = true;
      const int peer = static_cast<int>(i);
      if ((events & POLLIN) != 0 && (revents & ~POLLOUT) != 0) receive_some(peer);
      if ((events & POLLOUT) != 0 && (revents & ~POLLIN) != 0 && !peers_[i].sends.empty())
        send_some(peer);
    }
    return is_any;
  }

  /// Reads on after a failure. False when the peer has no more to say.
  bool hear_more(int index) noexcept {
    try {
      return receive_some(index);
    } catch (const std::exception&) {
      return false;  // farewell, or the end of the connection
    }
  }

  /// Takes in what the members still had to say, until one more of them has said farewell or ended.
  void listen(Deadline deadline) noexcept {
    for (std::size_t i = 0; i < peers_.size(); ++i)
      polls_[i] = {peers_[i].is_ended || static_cast<int>(i) == me_ ? -1 : peers_[i].socket.get(),
                   POLLIN, 0};
    if (::poll(polls_.data(), peers_.size(), deadline.poll_timeout_ms()) <= 0) return;
    for (std::size_t i = 0; i < peers_.size(); ++i)
      if (polls_[i].revents != 0) hear_more(static_cast<int>(i));
  }

  [[noreturn]] void give_up() {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (polls_[i].fd < 0) continue;
      lose(static_cast<int>(i),
           fmt::format("rank {} did not answer within the timeout", world_ranks_[i]));
    }
    lose(me_ == 0 ? 1 : 0, "a wait without an open connection");
  }

  const std::vector<int> world_ranks_;
  const int me_;
  Fd wake_;  // readable once broken
  std::vector<Peer> peers_;
  std::vector<pollfd> polls_;
  std::deque<OperationPtr> tickets_;
  Ticket first_ticket_ = 1;
  std::vector<OperationPtr> exchange_;
  Statements statements_;

  std::atomic<bool> is_broken_{false};
  Mutex broken_mutex_;
  int broken_peer_ KOLO_GUARDED_BY(broken_mutex_) = -1;
  std::string broken_reason_ KOLO_GUARDED_BY(broken_mutex_);
};

std::unique_ptr<Messenger> connect(const WireSetup& setup) {
  return std::make_unique<TcpMessenger>(setup);
}

}  // namespace

const WirePlugin& wire() noexcept {
  static const WirePlugin built_in{.abi = WirePlugin::kAbi,
                                   .name = "tcp",
                                   .library = "TCP sockets",
                                   .connect = connect,
                                   .make_bootstrap = nullptr};
  return built_in;
}

}  // namespace kolo::comm::tcp
