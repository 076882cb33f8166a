// Messages over Gloo's TCP pairs.
//
// A message is a frame: a head and, if it is short, the body behind it, put into a buffer that the
// receiver always has ready. The body of a longer message follows in segments, put straight into
// the memory that the receiver named, or aside if it has not named any yet. Gloo frames, sends and
// receives; this file decides when: a socket is written while it has room and read when bytes are
// there, so that no call blocks and messages flow in both directions at once. Progress is made
// inside the calls of this class; meanwhile the kernel's socket buffers keep the wire busy.
//
// Waiting polls for a moment (a wake-up costs more than a short message takes), then sleeps.
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <optional>

#include "base/errors.h"
#include "base/mutex.h"
#include "comm/wire/statements.h"
#include "gloo/config.h"
#include "gloo_mesh.h"

namespace kolo::comm {
namespace {

constexpr std::uint32_t kExchangeTag = 1U << 20;
/// The last frame of a member that gives up: whom.
constexpr std::uint32_t kFarewellTag = kExchangeTag + 1;
constexpr auto kSpin = std::chrono::microseconds(100);
/// For the rest of a message that has begun to arrive, in calls that do not wait.
constexpr auto kMomentary = std::chrono::seconds(10);

/// Largest put of a body. With Gloo's preamble it fits into two packets of segmentation offload
/// (64 KiB with headers): a little more than a whole number and every put ends with a tiny packet,
/// which takes twice the time. And it is less than what a socket that poll(2) calls writable has
/// free, a third of its buffer, so that puts do not block.
constexpr std::size_t kSegmentBytes = 128'000;
/// Asked for; the kernel doubles it (and allows no more than net.core.wmem_max). More would queue
/// what the receiver has no use for yet, and push the sender's data out of its cache.
constexpr int kSocketBufferBytes = 256 * 1024;

struct Operation {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::size_t moved = 0;
  std::uint32_t tag = 0;
  bool is_head_sent = false;
  bool is_exact = true;  ///< a receive that takes exactly `bytes`, not up to them
  bool is_done = false;
};
using OperationPtr = std::shared_ptr<Operation>;

/// A message that came before anybody asked for it.
struct Early {
  std::uint32_t tag;
  std::vector<std::byte> body;
};

struct Peer {
  GlooLine* line = nullptr;
  std::deque<OperationPtr> sends;
  std::deque<OperationPtr> receives;  // posted, not yet matched
  std::deque<Early> early;
  // The message whose segments are arriving.
  OperationPtr arriving;  // null: it goes to early.back()
  std::size_t arriving_left = 0;
  std::unique_ptr<gloo::transport::Buffer> arriving_buffer;
  std::unique_ptr<gloo::transport::Buffer> leaving_buffer;
  bool is_ended = false;  // closed, or said farewell
  std::size_t largest_put = 0;
  std::size_t put_since_exchange = 0;
  std::chrono::milliseconds socket_timeout{0};
};

class GlooMessenger final : public Messenger {
 public:
  explicit GlooMessenger(const WireSetup& setup)
      : world_ranks_(setup.world_ranks),
        me_(setup.me),
        mesh_(connect_mesh(setup)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        peers_(setup.world_ranks.size()),
        polls_(setup.world_ranks.size() + 1),
        statements_(static_cast<int>(setup.world_ranks.size()), setup.me) {
    if (!wake_.valid()) throw_errno("cannot create an eventfd");
    for (std::size_t i = 0; i < peers_.size(); ++i) peers_[i].line = &mesh_->lines()[i];
  }

  ~GlooMessenger() override {
    for (Peer& peer : peers_) {
      peer.arriving_buffer.reset();
      peer.leaving_buffer.reset();
    }
  }

  Ticket post_send(int peer, std::uint32_t tag, const void* data, std::size_t bytes) override {
    throw_if_broken();
    OperationPtr send = queue_send(peer, tag, data, bytes);
    while (!peers_[peer].sends.empty() && has_room(peer)) send_some(peer);
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
    if (::poll(polls_.data(), polls_.size(), 0) > 0) serve(Deadline::after(kMomentary));
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
      if (peers_[member].sends.empty() && may_put_small(member))
        put_frame(member, kExchangeTag, data, bytes);
      else
        pending.push_back(queue_send(member, kExchangeTag, data, bytes));
    }
    progress_until(
        [&] {
          return std::all_of(pending.begin(), pending.end(),
                             [](const OperationPtr& operation) { return operation->is_done; });
        },
        deadline);
    for (const int member : members) peers_[member].put_since_exchange = 0;
  }

  void abort(int peer, const std::string& reason) noexcept override {
    mark_broken(peer, reason);
    // A read or write in the middle of a message ends too.
    ::shutdown(peers_[peer].line->socket.get(), SHUT_RDWR);
  }

  int farewell(int suspect, Deadline deadline) noexcept override {
    mark_broken(suspect, "given up");
    for (int peer = 0; peer < static_cast<int>(peers_.size()); ++peer) {
      if (peer == me_) continue;
      peers_[peer].receives.clear();
      peers_[peer].sends.clear();
      try {
        const std::int32_t whom = suspect;
        if (has_room(peer)) put_frame(peer, kFarewellTag, &whom, sizeof whom);
      } catch (const std::exception&) {
        // Gone as well; what it said before shows below.
      }
      ::shutdown(peers_[peer].line->socket.get(), SHUT_WR);
    }
    int lost = suspect;
    while (!deadline.passed()) {
      lost = statements_.blame(suspect);
      if (peers_[lost].is_ended) break;  // and will say no more
      listen(deadline);
    }
    lost = statements_.blame(suspect);
    for (Peer& peer : peers_)
      if (peer.line->socket.valid()) ::shutdown(peer.line->socket.get(), SHUT_RDWR);
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

  /// Runs something of Gloo's on one line; its exceptions mean that the line is gone.
  template <class Action>
  void on_line(int peer, Action&& action) {
    try {
      action();
    } catch (const std::exception&) {
      peers_[peer].is_ended = true;
      // In the middle of a message, Gloo has passed the last frame by.
      hear_farewell(peer);
      throw_if_broken();  // aborted meanwhile: that reason is the better one
      lose(peer, fmt::format("the connection to rank {} is closed", world_ranks_[peer]));
    }
  }

  /// Notes what a member's last frame says, if it is there.
  bool hear_farewell(int peer) {
    const Frame& frame = *peers_[peer].line->incoming;
    if (frame.head.tag != kFarewellTag) return false;
    std::int32_t whom = -1;
    std::memcpy(&whom, frame.body, sizeof whom);
    statements_.hear(peer, whom);
    return true;
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

  /// As has_room(), usually without asking: whoever answered the last exchange has taken in all
  /// that was sent before the one before it, and what was sent since fits.
  bool may_put_small(int peer) {
    return peers_[peer].put_since_exchange < kSegmentBytes || has_room(peer);
  }

  bool has_room(int peer) {
    pollfd writable{peers_[peer].line->socket.get(), POLLOUT, 0};
    return ::poll(&writable, 1, 0) == 1;
  }

  void put(int peer, gloo::transport::Buffer& buffer, std::size_t offset, std::size_t bytes) {
    on_line(peer, [&] {
      const PipeSignalBlocked blocked;
      buffer.send(offset, bytes, offset);
      buffer.waitSend();
    });
    peers_[peer].put_since_exchange += bytes;
    if (bytes > peers_[peer].largest_put) {
      // Gloo has just shrunk the socket's buffer to the size of its largest message.
      peers_[peer].largest_put = bytes;
      ::setsockopt(peers_[peer].line->socket.get(), SOL_SOCKET, SO_SNDBUF, &kSocketBufferBytes,
                   sizeof kSocketBufferBytes);
    }
  }

  void put_frame(int peer, std::uint32_t tag, const void* data, std::size_t bytes) {
    GlooLine& line = *peers_[peer].line;
    const std::size_t body = bytes <= Frame::kBodyBytes ? bytes : 0;
    line.outgoing->head = {bytes, tag, 0};
    if (body != 0) std::memcpy(line.outgoing->body, data, body);
    put(peer, *line.send_frame, 0, offsetof(Frame, body) + body);
  }

  /// Moves the first message of the queue on by one put.
  void send_some(int index) {
    Peer& peer = peers_[index];
    Operation& send = *peer.sends.front();
    if (!send.is_head_sent) {
      put_frame(index, send.tag, send.data, send.bytes);
      send.is_head_sent = true;
      if (send.bytes <= Frame::kBodyBytes) {
        send.moved = send.bytes;
      } else {
        peer.leaving_buffer =
            peer.line->pair->createSendBuffer(peer.line->send_slot + 2, send.data, send.bytes);
        return;
      }
    } else {
      const std::size_t bytes = std::min(kSegmentBytes, send.bytes - send.moved);
      put(index, *peer.leaving_buffer, send.moved, bytes);
      send.moved += bytes;
    }
    if (send.moved == send.bytes) {
      peer.leaving_buffer.reset();
      send.is_done = true;
      peer.sends.pop_front();
    }
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
        peer.early.size() - (peer.arriving_left != 0 && peer.arriving == nullptr ? 1 : 0);
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

  OperationPtr take_receive(Peer& peer, std::uint32_t tag) {
    for (auto it = peer.receives.begin(); it != peer.receives.end(); ++it) {
      if ((*it)->tag != tag) continue;
      OperationPtr receive = *it;
      peer.receives.erase(it);
      return receive;
    }
    return nullptr;
  }

  /// Reads one put. Called when its first bytes are there.
  void receive_some(int index) {
    Peer& peer = peers_[index];
    if (peer.arriving_left != 0) {
      on_line(index, [&] { peer.arriving_buffer->waitRecv(); });
      peer.arriving_left -= std::min(kSegmentBytes, peer.arriving_left);
      if (peer.arriving_left != 0) return;
      peer.arriving_buffer.reset();
      if (peer.arriving != nullptr) {
        peer.arriving->is_done = true;
        peer.arriving = nullptr;
      } else {
        deliver_late(index);
      }
      return;
    }
    on_line(index, [&] { peer.line->recv_frame->waitRecv(); });
    if (hear_farewell(index)) {
      peer.is_ended = true;
      lose(index, fmt::format("rank {} has given up another rank", world_ranks_[index]));
    }
    const FrameHead head = peer.line->incoming->head;
    const std::byte* body = peer.line->incoming->body;
    OperationPtr receive = take_receive(peer, head.tag);
    if (receive != nullptr) check_size(index, *receive, head.bytes);
    if (head.bytes <= Frame::kBodyBytes) {
      if (receive != nullptr) {
        if (head.bytes != 0) std::memcpy(receive->data, body, head.bytes);
        receive->is_done = true;
      } else {
        peer.early.push_back({head.tag, {body, body + head.bytes}});
      }
      return;
    }
    std::byte* target;
    if (receive != nullptr) {
      target = receive->data;
    } else {
      peer.early.push_back({head.tag, std::vector<std::byte>(head.bytes)});
      target = peer.early.back().body.data();
    }
    peer.arriving = std::move(receive);
    peer.arriving_left = head.bytes;
    peer.arriving_buffer =
        peer.line->pair->createRecvBuffer(peer.line->recv_slot + 2, target, head.bytes);
  }

  /// A message that was put aside is complete; it may have been asked for while it arrived.
  void deliver_late(int index) {
    Peer& peer = peers_[index];
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
      polls_[i] = {events != 0 ? peer.line->socket.get() : -1, static_cast<short>(events), 0};
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
        ready = ::poll(polls_.data(), polls_.size(), deadline.poll_timeout_ms());
        if (ready == 0 && deadline.passed()) give_up();
      }
      if (ready <= 0) {
        ::sched_yield();
        continue;
      }
      if (serve(deadline)) spin_end = Deadline::Clock::now() + kSpin;
    }
  }

  /// Moves what poll(2) found ready. False if that was nothing of a peer's.
  bool serve(Deadline deadline) {
    bool is_any = false;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const auto [fd, events, revents] = polls_[i];
      if (revents == 0) continue;
      is_any = true;
      limit_blocking(peers_[i], deadline);
      const int peer = static_cast<int>(i);
      if ((events & POLLIN) != 0 && (revents & ~POLLOUT) != 0) receive_some(peer);
      if ((events & POLLOUT) != 0 && (revents & ~POLLIN) != 0) send_some(peer);
    }
    return is_any;
  }

  /// Bytes of a put that has begun follow at once unless the peer is stopped: then not for ever.
  void limit_blocking(Peer& peer, Deadline deadline) {
    const auto left = std::max(std::chrono::ceil<std::chrono::milliseconds>(deadline.left()),
                               std::chrono::milliseconds(1));
    if (peer.socket_timeout <= left * 2 && peer.socket_timeout >= left / 2) return;
    peer.socket_timeout = left;
    timeval value{.tv_sec = left.count() / 1000, .tv_usec = left.count() % 1000 * 1000};
    ::setsockopt(peer.line->socket.get(), SOL_SOCKET, SO_RCVTIMEO, &value, sizeof value);
    ::setsockopt(peer.line->socket.get(), SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value);
  }

  /// Takes in what the members still had to say, until one more of them has said farewell or ended.
  void listen(Deadline deadline) noexcept {
    for (std::size_t i = 0; i < peers_.size(); ++i)
      polls_[i] = {
          peers_[i].is_ended || static_cast<int>(i) == me_ ? -1 : peers_[i].line->socket.get(),
          POLLIN, 0};
    if (::poll(polls_.data(), peers_.size(), deadline.poll_timeout_ms()) <= 0) return;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (polls_[i].revents == 0) continue;
      limit_blocking(peers_[i], deadline);
      try {
        receive_some(static_cast<int>(i));
      } catch (const std::exception&) {
        // Farewell, or the end of the connection.
      }
    }
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
  std::unique_ptr<GlooMesh> mesh_;
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
  return std::make_unique<GlooMessenger>(setup);
}

}  // namespace
}  // namespace kolo::comm

#define KOLO_TEXT_OF(value) #value
#define KOLO_TEXT(value) KOLO_TEXT_OF(value)

extern "C" __attribute__((visibility("default"))) const kolo::comm::WirePlugin* kolo_wire_plugin() {
  static const kolo::comm::WirePlugin plugin{
      .abi = kolo::comm::WirePlugin::kAbi,
      .name = "gloo",
      .library = "Gloo " KOLO_TEXT(GLOO_VERSION_MAJOR) "." KOLO_TEXT(
          GLOO_VERSION_MINOR) "." KOLO_TEXT(GLOO_VERSION_PATCH),
      .connect = kolo::comm::connect,
      .make_bootstrap = nullptr,
  };
  return &plugin;
}
