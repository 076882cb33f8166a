#include "mpi_bootstrap.h"

#include <cstring>
#include <map>

#include "base/errors.h"
#include "base/host.h"
#include "mpi_session.h"

namespace kolo::comm {
namespace {

/// Ranks that MPI says can share memory, and whose host names are equal: one without the other is
/// not enough for containers, nor for virtual nodes on one machine.
Topology find_topology(MpiSession& session) {
  int rank = 0, size = 0;
  MPI_Comm_rank(session.world(), &rank);
  MPI_Comm_size(session.world(), &size);

  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(session.world(), MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  int first = rank;  // the lowest rank of this node
  MPI_Bcast(&first, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);

  struct Place {
    int node;
    char host[256];
  } mine{first, {}};
  host_name().copy(mine.host, sizeof mine.host - 1);
  std::vector<Place> places(static_cast<std::size_t>(size));
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, places.data(), sizeof mine, MPI_BYTE,
                session.world());

  std::map<std::pair<int, std::string>, int> numbers;
  std::vector<int> host_of_rank;
  for (const Place& place : places)
    host_of_rank.push_back(
        numbers.try_emplace({place.node, place.host}, static_cast<int>(numbers.size()))
            .first->second);
  return {rank, std::move(host_of_rank)};
}

/// Meetings of different names have different tags (nearly always: the name travels too).
int tag_of(std::string_view key) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return static_cast<int>(hash % 32000U);
}

class MpiBootstrap final : public Bootstrap {
 public:
  MpiBootstrap() : session_(MpiSession::get()), topology_(find_topology(session_)) {}

  [[nodiscard]] const Topology& topology() const noexcept override { return topology_; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("mpirun ({})", kMpiName);
  }
  [[nodiscard]] std::string wire_plugin() const override { return kMpiPlugin; }

  std::vector<std::string> allgather(std::string_view key, const std::vector<int>& members,
                                     std::string_view mine, Deadline deadline) override {
    const int tag = tag_of(key);
    std::string message(key);
    message += '\0';
    message += mine;
    std::vector<std::string> all(members.size());
    std::vector<MPI_Request> sends;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] == topology_.rank()) {
        all[i] = mine;
        continue;
      }
      const auto lock = session_.lock();
      MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_BYTE, members[i], tag,
                session_.world(), &sends.emplace_back());
    }
    for (std::size_t i = 0; i < members.size(); ++i)
      if (members[i] != topology_.rank()) all[i] = receive(key, members[i], tag, deadline);
    for (MPI_Request& send : sends) finish(key, send, deadline);
    return all;
  }

 private:
  [[noreturn]] static void give_up(std::string_view key, int member) {
    throw Error(ErrorCode::timeout,
                fmt::format("meeting '{}': rank {} did not arrive in time", key, member), member);
  }

  std::string receive(std::string_view key, int member, int tag, Deadline deadline) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    for (MpiPatience patience;; patience.pause()) {
      const auto lock = session_.lock();
      int is_there = 0;
      const int code = MPI_Improbe(member, tag, session_.world(), &is_there, &message, &status);
      if (code != MPI_SUCCESS)
        throw Error(ErrorCode::peer_lost,
                    fmt::format("meeting '{}' with rank {}: {}", key, member, mpi_error_text(code)),
                    member);
      if (is_there != 0) break;
      if (deadline.passed()) give_up(key, member);
    }
    const auto lock = session_.lock();
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    std::string text(static_cast<std::size_t>(bytes), '\0');
    MPI_Mrecv(text.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    const std::size_t end = text.find('\0');
    if (text.substr(0, end) != key)
      throw_error(ErrorCode::internal, "meeting '{}': rank {} came to meeting '{}'", key, member,
                  text.substr(0, end));
    return text.substr(end + 1);
  }

  void finish(std::string_view key, MPI_Request& send, Deadline deadline) {
    for (MpiPatience patience;; patience.pause()) {
      const auto lock = session_.lock();
      int is_done = 0;
      MPI_Test(&send, &is_done, MPI_STATUS_IGNORE);
      if (is_done != 0) return;
      if (deadline.passed())
        throw_error(ErrorCode::timeout, "meeting '{}': a rank does not listen", key);
    }
  }

  MpiSession& session_;
  const Topology topology_;
};

}  // namespace

std::shared_ptr<Bootstrap> make_mpi_bootstrap() { return std::make_shared<MpiBootstrap>(); }

}  // namespace kolo::comm
