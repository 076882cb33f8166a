// What owners and custodians say to each other, whatever carries the bytes.
//
// The custodian opens with kGreeting, so that what a login shell printed before can be skipped.
// Then both speak in frames (base/frames.h). A frame `line` holds nothing but the end of a line and
// follows whatever the custodian sends: srun holds back what has none.
//
// Over pipes and socket pairs the custodian takes orders at once: whoever made the process has
// them. Over a listening socket everything is sealed (base/secure_stream.h), there is no greeting,
// and the owner speaks first: it says who it is, and only then the custodian says hello.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/frames.h"
#include "base/secret.h"
#include "exec/ledger.h"
#include "exec/task.h"

namespace kolo::exec {

using namespace std::string_view_literals;
inline constexpr std::string_view kGreeting = "\0kolo custodian 3\n"sv;

/// Numbers are part of the protocol: never reuse one.
enum class Kind : std::uint8_t {
  // owner to custodian
  claim = 1,        ///< Claim
  environment = 2,  ///< list of NAME=VALUE: what all later tasks of this owner get
  start = 3,        ///< Task; its descriptors come beside the bytes
  end = 4,          ///< TaskId: SIGTERM, and SIGKILL after the grace time
  kill = 5,         ///< TaskId: SIGKILL
  renew = 6,        ///< the lease begins anew
  finish = 7,       ///< no task will follow: the custodian may end when all have ended
  lease = 8,        ///< milliseconds: an owner that is silent for longer is lost; 0 = never
  family = 14,      ///< text: what earlier owners of this family left here has ended first
  // to a custodian that listens
  reserve = 9,     ///< ReservationOrder; `reserved` or `refused` follows
  release = 10,    ///< ReservationId: free as soon as no task of it is left
  drain = 11,      ///< 1 = no reservations any more, 0 = again
  measure = 13,    ///< HostLoad follows
  shut_down = 12,  ///< ends all tasks of all owners, and the custodian; then the link closes
  // to a custodian that was started by its owner
  listen = 15,  ///< ListenOrder: serve others, too, as long as this owner is there
  // custodian to owner
  hello = 64,      ///< Hello
  output = 65,     ///< Output
  exited = 66,     ///< Exited
  ended = 67,      ///< TaskEnd
  line = 68,       ///< the end of a line
  reserved = 70,   ///< ReservationId
  refused = 71,    ///< Refusal
  host_load = 73,  ///< HostLoad
  holdings = 72,   ///< Holdings: after hello, and whenever they have changed
  listening = 74,  ///< Listening, the answer to `listen`
};

struct Hello {
  std::string host;    ///< the machine's own name for itself
  std::string from;    ///< the owner's address as this host sees it, "" if not known
  int processors = 1;  ///< that the custodian may use
};

/// What a host does altogether, whoever has started it.
struct HostLoad {
  double load = 0;  ///< average of the last minute, as uptime(1) has it
  std::uint64_t memory_bytes = 0, available_bytes = 0;
};

/// How an owner introduces itself to a custodian that listens.
struct Claim {
  std::string owner;  ///< its name in messages
  /// An owner that is silent for longer is lost; 0 = only a closed connection tells.
  std::chrono::milliseconds lease{0};
};

struct ReservationOrder {
  ReservationId id = 0;
  Amounts want;
};

struct Refusal {
  ReservationId id = 0;
  std::string reason;  ///< who has it
};

/// Either side of a connection to a custodian that listens takes the other for lost if it has not
/// answered for so long, unless its cluster says otherwise.
inline constexpr std::chrono::seconds kUsualKeepAlive{20};

/// How a custodian that was started by its owner becomes one that others can use.
struct ListenOrder {
  Secret secret = Secret::random();        ///< that the others know
  Amounts has{};                           ///< what they can reserve; 0 slots = one per processor
  std::chrono::milliseconds idle_time{0};  ///< ends after so long without them; 0 = never
  std::chrono::seconds keep_alive = kUsualKeepAlive;
};

struct Listening {
  std::string address{};
  std::string error{};  ///< why it does not
};

std::string encode(const Hello& message);
std::string encode(const Claim& message);
std::string encode(const Task& message);
std::string encode(const Output& message);
std::string encode(const Exited& message);
std::string encode(const TaskEnd& message);
std::string encode(const std::vector<std::string>& environment);
std::string encode(TaskId task);
std::string encode(std::chrono::milliseconds lease);
std::string encode(const ReservationOrder& message);
std::string encode(const Refusal& message);
std::string encode(const Holdings& message);
std::string encode(const HostLoad& message);
std::string encode(const ListenOrder& message);
std::string encode(const Listening& message);

// Each throws corruption unless the payload is exactly one such message.
Hello decode_hello(std::string_view payload);
Claim decode_claim(std::string_view payload);
Task decode_task(std::string_view payload);
Output decode_output(std::string_view payload);
Exited decode_exited(std::string_view payload);
TaskEnd decode_task_end(std::string_view payload);
std::vector<std::string> decode_environment(std::string_view payload);
TaskId decode_task_id(std::string_view payload);
std::chrono::milliseconds decode_lease(std::string_view payload);
ReservationOrder decode_reservation(std::string_view payload);
Refusal decode_refusal(std::string_view payload);
Holdings decode_holdings(std::string_view payload);
HostLoad decode_host_load(std::string_view payload);
ListenOrder decode_listen_order(std::string_view payload);
Listening decode_listening(std::string_view payload);

inline std::string frame(Kind kind, std::string_view payload = {}) {
  return encode_frame(static_cast<std::uint8_t>(kind), payload);
}

}  // namespace kolo::exec
