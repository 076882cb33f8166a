// Messages over MPI. Compiled once for each MPI that is installed.
//
// MPI does the matching and the moving; this file adds deadlines, long messages, and an end to
// waits for ranks that are gone. A rank that dies usually takes the job with it (mpirun sees to
// that), so what is left here is to fail rather than hang.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <unordered_map>

#include "base/errors.h"
#include "base/mutex.h"
#include "comm/wire/messenger.h"
#include "comm/wire/statements.h"
#include "mpi_bootstrap.h"
#include "mpi_session.h"

namespace kolo::comm {
namespace {

/// Counts of MPI are int.
constexpr std::size_t kPieceBytes = std::size_t{1} << 30;
constexpr int kExchangeTag = 1 << 20;
constexpr int kFarewellTag = kExchangeTag + 1;

struct Operation {
  int peer = -1;
  bool is_receive = false;
  std::vector<MPI_Request> requests;
};

class MpiMessenger final : public Messenger {
 public:
  explicit MpiMessenger(const WireSetup& setup)
      : session_(MpiSession::get()),
        world_ranks_(setup.world_ranks),
        me_(setup.me),
        statements_(static_cast<int>(setup.world_ranks.size()), setup.me) {
    const auto lock = session_.lock();
    int* largest_tag = nullptr;
    int is_known = 0;
    MPI_Comm_get_attr(session_.world(), MPI_TAG_UB, static_cast<void*>(&largest_tag), &is_known);
    if (is_known == 0 || *largest_tag < kFarewellTag)
      throw_error(ErrorCode::unsupported, "{} has tags up to {} only", kMpiName,
                  is_known != 0 ? *largest_tag : 32767);
    MPI_Group world = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
    MPI_Comm_group(session_.world(), &world);
    int code =
        MPI_Group_incl(world, static_cast<int>(world_ranks_.size()), world_ranks_.data(), &members);
    if (code == MPI_SUCCESS) code = MPI_Comm_create_group(session_.world(), members, 0, &comm_);
    if (members != MPI_GROUP_NULL) MPI_Group_free(&members);
    MPI_Group_free(&world);
    if (code != MPI_SUCCESS)
      throw_error(ErrorCode::unavailable, "cannot connect {} ranks with {}: {}",
                  world_ranks_.size(), kMpiName, mpi_error_text(code));
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }

  ~MpiMessenger() override {
    if (!MpiSession::is_running()) return;
    const auto lock = session_.lock();
    for (auto& [ticket, operation] : operations_) abandon(operation);
    for (Operation& operation : exchange_) abandon(operation);
    // Freeing is collective: not with a member missing.
    if (!is_broken_.load()) MPI_Comm_free(&comm_);
  }

  Ticket post_send(int peer, std::uint32_t tag, const void* data, std::size_t bytes) override {
    throw_if_broken();
    Operation send{peer, false, {}};
    const auto* from = static_cast<const std::byte*>(data);
    const auto lock = session_.lock();
    for_pieces(bytes, [&](std::size_t start, int length) {
      check(peer, MPI_Isend(from + start, length, MPI_BYTE, peer, static_cast<int>(tag), comm_,
                            &send.requests.emplace_back(MPI_REQUEST_NULL)));
    });
    return remember(std::move(send));
  }

  Ticket post_recv(int peer, std::uint32_t tag, void* data, std::size_t bytes) override {
    throw_if_broken();
    Operation receive{peer, true, {}};
    auto* to = static_cast<std::byte*>(data);
    const auto lock = session_.lock();
    for_pieces(bytes, [&](std::size_t start, int length) {
      check(peer, MPI_Irecv(to + start, length, MPI_BYTE, peer, static_cast<int>(tag), comm_,
                            &receive.requests.emplace_back(MPI_REQUEST_NULL)));
    });
    return remember(std::move(receive));
  }

  void wait(Ticket ticket, Deadline deadline) override {
    finish(operations_.at(ticket), deadline);
    operations_.erase(ticket);
  }

  bool test(Ticket ticket) override {
    throw_if_broken();
    if (!is_done(operations_.at(ticket))) return false;
    operations_.erase(ticket);
    return true;
  }

  void exchange_small(std::span<const int> members, std::span<const SmallMessage> mine, void* all,
                      std::size_t stride, Deadline deadline) override {
    throw_if_broken();
    exchange_.clear();
    auto* row = static_cast<std::byte*>(all);
    {
      const auto lock = session_.lock();
      for (std::size_t i = 0; i < members.size(); ++i) {
        const int member = members[i];
        if (member == me_) {
          if (mine[i].data() != row) std::memcpy(row, mine[i].data(), mine[i].size());
        } else {
          Operation& receive = exchange_.emplace_back(Operation{member, true, {}});
          check(member, MPI_Irecv(row, static_cast<int>(stride), MPI_BYTE, member, kExchangeTag,
                                  comm_, &receive.requests.emplace_back(MPI_REQUEST_NULL)));
        }
        row += stride;
      }
      for (std::size_t i = 0; i < members.size(); ++i) {
        const int member = members[i];
        if (member == me_) continue;
        Operation& send = exchange_.emplace_back(Operation{member, false, {}});
        check(member,
              MPI_Isend(mine[i].data(), static_cast<int>(mine[i].size()), MPI_BYTE, member,
                        kExchangeTag, comm_, &send.requests.emplace_back(MPI_REQUEST_NULL)));
      }
    }
    for (Operation& operation : exchange_) finish(operation, deadline);
    exchange_.clear();
  }

  void abort(int peer, const std::string& reason) noexcept override {
    MutexLock lock(broken_mutex_);
    if (broken_peer_ < 0) {
      broken_peer_ = peer;
      broken_reason_ = reason;
    }
    is_broken_.store(true);
    session_.give_up();
  }

  int farewell(int suspect, Deadline deadline) noexcept override {
    abort(suspect, "given up");
    farewell_ = suspect;
    {
      const auto lock = session_.lock();
      for (int member = 0; member < static_cast<int>(world_ranks_.size()); ++member) {
        if (member == me_) continue;
        MPI_Request request = MPI_REQUEST_NULL;
        if (MPI_Isend(&farewell_, 1, MPI_INT, member, kFarewellTag, comm_, &request) == MPI_SUCCESS)
          MPI_Request_free(&request);
      }
    }
    for (MpiPatience patience; !deadline.passed(); patience.pause()) hear_farewells();
    for (auto& [ticket, operation] : operations_) abandon(operation);
    for (Operation& operation : exchange_) abandon(operation);
    return statements_.blame(suspect);
  }

 private:
  /// Returns a member that has said farewell since the last call, or -1.
  int hear_farewells() {
    const auto lock = session_.lock();
    int is_there = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, kFarewellTag, comm_, &is_there, &status) != MPI_SUCCESS ||
        is_there == 0)
      return -1;
    int whom = -1;
    MPI_Recv(&whom, 1, MPI_INT, status.MPI_SOURCE, kFarewellTag, comm_, MPI_STATUS_IGNORE);
    statements_.hear(status.MPI_SOURCE, whom);
    return status.MPI_SOURCE;
  }

  template <class Action>
  static void for_pieces(std::size_t bytes, Action&& action) {
    std::size_t start = 0;
    do {
      const std::size_t length = std::min(kPieceBytes, bytes - start);
      action(start, static_cast<int>(length));
      start += length;
    } while (start < bytes);
  }

  Ticket remember(Operation operation) {
    operations_.emplace(++last_ticket_, std::move(operation));
    return last_ticket_;
  }

  void throw_if_broken() {
    if (!is_broken_.load()) return;
    MutexLock lock(broken_mutex_);
    throw Error(ErrorCode::peer_lost, broken_reason_, broken_peer_);
  }

  void check(int peer, int code) {
    if (code == MPI_SUCCESS) return;
    abort(peer, fmt::format("{} cannot reach rank {}: {}", kMpiName, world_ranks_[peer],
                            mpi_error_text(code)));
    throw_if_broken();
  }

  bool is_done(Operation& operation) {
    const auto lock = session_.lock();
    while (!operation.requests.empty()) {
      int is_complete = 0;
      check(operation.peer, MPI_Test(&operation.requests.back(), &is_complete, MPI_STATUS_IGNORE));
      if (is_complete == 0) return false;
      operation.requests.pop_back();
    }
    return true;
  }

  void finish(Operation& operation, Deadline deadline) {
    constexpr int kPollsBetweenNews = 256;
    int polls = 0;
    for (MpiPatience patience; !is_done(operation); patience.pause()) {
      throw_if_broken();
      if (++polls % kPollsBetweenNews == 0)
        if (const int member = hear_farewells(); member >= 0) {
          abort(member, fmt::format("rank {} has given up another rank", world_ranks_[member]));
          throw_if_broken();
        }
      if (!deadline.passed()) continue;
      abort(operation.peer,
            fmt::format("rank {} did not answer within the timeout", world_ranks_[operation.peer]));
      throw_if_broken();
    }
  }

  /// The memory of the operation is about to go.
  static void abandon(Operation& operation) {
    for (MPI_Request& request : operation.requests) {
      if (request == MPI_REQUEST_NULL) continue;
      if (operation.is_receive) MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
    operation.requests.clear();
  }

  MpiSession& session_;
  const std::vector<int> world_ranks_;
  const int me_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::unordered_map<Ticket, Operation> operations_;
  Ticket last_ticket_ = 0;
  std::vector<Operation> exchange_;
  Statements statements_;
  int farewell_ = -1;  // what the last messages carry

  std::atomic<bool> is_broken_{false};
  Mutex broken_mutex_;
  int broken_peer_ KOLO_GUARDED_BY(broken_mutex_) = -1;
  std::string broken_reason_ KOLO_GUARDED_BY(broken_mutex_);
};

std::unique_ptr<Messenger> connect(const WireSetup& setup) {
  return std::make_unique<MpiMessenger>(setup);
}

}  // namespace
}  // namespace kolo::comm

#define KOLO_TEXT_OF(value) #value
#define KOLO_TEXT(value) KOLO_TEXT_OF(value)
#if defined(OPEN_MPI)
#define KOLO_MPI_LIBRARY                                                                     \
  "Open MPI " KOLO_TEXT(OMPI_MAJOR_VERSION) "." KOLO_TEXT(OMPI_MINOR_VERSION) "." KOLO_TEXT( \
      OMPI_RELEASE_VERSION)
#else
#define KOLO_MPI_LIBRARY "MPICH " MPICH_VERSION
#endif

extern "C" __attribute__((visibility("default"))) const kolo::comm::WirePlugin* kolo_wire_plugin() {
  static const kolo::comm::WirePlugin plugin{
      .abi = kolo::comm::WirePlugin::kAbi,
      .name = "mpi",
      .library = KOLO_MPI_LIBRARY,
      .connect = kolo::comm::connect,
      .make_bootstrap = kolo::comm::make_mpi_bootstrap,
  };
  return &plugin;
}
