// All members meet twice (WireSetup::allgather). At the first meeting each tells where it listens,
// and with which secret; at the second, whether it has all its connections. In between a thread
// lets in the members above while this one calls those below. Who fails says so at the next meeting
// instead of staying away, so that all members fail together, and for the same reason.
#include "comm/wire/tcp/mesh.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>

#include "base/errors.h"
#include "comm/rendezvous/caller.h"
#include "comm/rendezvous/doorkeeper.h"
#include "comm/wire/tcp/address.h"

namespace kolo::comm::tcp {
namespace {

using rendezvous::Caller;
using rendezvous::Doorkeeper;
using rendezvous::Hello;
using rendezvous::Purpose;

/// Of the time that a meeting has, so that all have heard of a failure before they give each other
/// up.
std::chrono::milliseconds patience(std::chrono::milliseconds timeout) {
  return std::min(timeout / 2, std::chrono::milliseconds(30'000));
}

/// For one attempt to reach a member, whose packets may be lost, and between two attempts.
constexpr std::chrono::seconds kOneAttempt{3};
constexpr std::chrono::milliseconds kPause{5};

/// What a member tells the others before they connect.
struct Invitation {
  SocketAddress address;
  Secret secret = Secret::random();
};

std::string pack(const Invitation& invitation) {
  return ByteWriter().raw(invitation.secret.bytes()).string(invitation.address.str()).bytes();
}

Invitation unpack(std::string_view text) {
  ByteReader reader(text);
  Invitation invitation;
  invitation.secret = Secret::from_bytes(reader.raw(Secret::kBytes));
  invitation.address = SocketAddress::parse(reader.string());
  reader.finish();
  return invitation;
}

/// The making of one member's connections. Those who call are let in by a thread of their own, so
/// that nobody waits for a turn.
class Mesh {
 public:
  explicit Mesh(const WireSetup& setup)
      : setup_(setup),
        sockets_(setup.world_ranks.size()),
        over_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!over_.valid()) throw_errno("cannot create an eventfd");
  }

  /// Opens the port. What the others need to know; then connect() with everybody's.
  std::string invite(const SocketAddress& address) {
    Invitation mine;
    std::vector<Fd> listeners;
    listeners.push_back(listen_tcp(address));
    mine.address = local_address_of(listeners.back().get());
    door_.emplace(
        std::move(listeners),
        rendezvous::DoorkeeperOptions{.secret = mine.secret, .expects = [this](const Hello& hello) {
                                        return is_awaited(hello);
                                      }});
    return pack(mine);
  }

  std::vector<Fd> connect(const std::vector<std::string>& invitations, Deadline deadline) {
    // A member's death must not leave this one waiting for it.
    const std::shared_ptr<void> guard = setup_.when_lost([this] { cancel(); });
    auto guests = std::async(std::launch::async, [&] { let_in(deadline); });
    try {
      for (int member = 0; member < setup_.me; ++member)
        sockets_[static_cast<std::size_t>(member)] =
            call(member, unpack(invitations[static_cast<std::size_t>(member)]), deadline);
    } catch (...) {
      cancel();
      guests.wait();
      throw;
    }
    guests.get();
    door_.reset();
    return std::move(sockets_);
  }

 private:
  void cancel() noexcept {
    is_cancelled_ = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(over_.get(), &one, sizeof one);
  }

  [[noreturn]] void fail(int member, const std::string& why) const {
    throw_error(ErrorCode::unavailable, "no connection to rank {}: {}",
                setup_.world_ranks[static_cast<std::size_t>(member)],
                is_cancelled_ ? "a rank died meanwhile" : why);
  }

  /// A greater member that has not come yet.
  [[nodiscard]] bool is_awaited(const Hello& hello) const {
    return hello.purpose == Purpose::wire && hello.rank > setup_.me &&
           hello.rank < static_cast<int>(sockets_.size()) &&
           !sockets_[static_cast<std::size_t>(hello.rank)].valid();
  }

  void let_in(Deadline deadline) {
    const auto missing = [&] {
      return std::find_if(sockets_.begin() + setup_.me + 1, sockets_.end(),
                          [](const Fd& socket) { return !socket.valid(); });
    };
    while (missing() != sockets_.end()) {
      pollfd polls[] = {{door_->poll_fd(), POLLIN, 0}, {over_.get(), POLLIN, 0}};
      ::poll(polls, 2, deadline.poll_timeout_ms());
      if (is_cancelled_ || deadline.passed())
        fail(static_cast<int>(missing() - sockets_.begin()), "it did not come");
      for (auto& guest : door_->admit())
        if (is_awaited(guest.hello))
          sockets_[static_cast<std::size_t>(guest.hello.rank)] = std::move(guest.socket);
    }
  }

  Fd call(int member, const Invitation& invitation, Deadline deadline) const {
    std::string problem = "there was no time";
    while (!deadline.passed() && !is_cancelled_) {
      try {
        const auto limit =
            Deadline::after(std::min<std::chrono::nanoseconds>(kOneAttempt, deadline.left()));
        return Caller(invitation.address, Purpose::wire, setup_.me, limit, invitation.address.str())
            .prove(invitation.secret, limit);
      } catch (const Error& error) {
        problem = error.message();
      }
      pollfd poll{over_.get(), POLLIN, 0};
      ::poll(&poll, 1, static_cast<int>(kPause.count()));
    }
    fail(member, problem);
  }

  const WireSetup& setup_;
  std::vector<Fd> sockets_;  // by member: those below me of the caller, those above of the thread
  std::optional<Doorkeeper> door_;
  Fd over_;  // readable once cancelled
  std::atomic<bool> is_cancelled_{false};
};

/// Members report failures in the meetings, so that all of them fail together.
constexpr char kFailed = '!';
constexpr char kFine = '+';

void throw_if_any_failed(const WireSetup& setup, const std::vector<std::string>& reports) {
  for (std::size_t member = 0; member < reports.size(); ++member)
    if (!reports[member].starts_with(kFine))
      throw_error(ErrorCode::unavailable, "cannot connect with tcp: rank {}: {}",
                  setup.world_ranks[member],
                  reports[member].empty() ? "it said nothing" : reports[member].substr(1));
}

/// Everybody's text, if nobody failed to make one.
template <class Make>
std::vector<std::string> meet(const WireSetup& setup, Make&& make) {
  std::string mine;
  try {
    mine = kFine + make();
  } catch (const std::exception& error) {
    mine = kFailed + std::string(error.what());
  }
  std::vector<std::string> all = setup.allgather(mine);
  throw_if_any_failed(setup, all);
  for (std::string& text : all) text.erase(0, 1);
  return all;
}

}  // namespace

std::vector<Fd> connect_mesh(const WireSetup& setup) {
  Mesh mesh(setup);
  std::optional<SocketAddress> address;
  std::string failure;
  try {
    address = choose_address(setup);
  } catch (const Error& error) {
    failure = error.message();
  }
  const auto invitations = meet(setup, [&] {
    if (!address) throw_error(ErrorCode::unavailable, "{}", failure);
    return mesh.invite(*address);
  });
  std::vector<Fd> sockets;
  meet(setup, [&] {
    sockets = mesh.connect(invitations, Deadline::after(patience(setup.timeout)));
    return std::string();
  });
  return sockets;
}

}  // namespace kolo::comm::tcp
