// Whom a custodian serves: owners, what they may order, and what they have reserved.
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/host.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/socket.h"
#include "exec/binding.h"
#include "exec/custodian.h"
#include "exec/start.h"

namespace kolo::exec {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Strangers have this long to prove who they are, and there are never more of them than this.
constexpr auto kClaimTime = 5s;
constexpr std::size_t kMostStrangers = 64;
/// Without descriptors nobody can be let in; trying again and again would only burn time.
constexpr auto kAcceptAgain = 100ms;

/// The other side's address, without the port.
std::string peer_of(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (::getpeername(socket, raw, &length) != 0) return {};
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return {};
  return SocketAddress::from_raw(raw, length).host();
}

HostLoad measure_host() {
  HostLoad host;
  if (::getloadavg(&host.load, 1) != 1) host.load = 0;
  std::istringstream lines(read_file("/proc/meminfo"));  // "MemTotal:   16384 kB"
  for (std::string name, unit; lines >> name;) {
    std::uint64_t kilobytes = 0;
    lines >> kilobytes;
    std::getline(lines, unit);
    if (name == "MemTotal:") host.memory_bytes = 1024 * kilobytes;
    if (name == "MemAvailable:") host.available_bytes = 1024 * kilobytes;
  }
  return host;
}

/// The part of these processors that one of several tasks gets; all of them if there are too few.
std::vector<int> share_of(const std::vector<int>& processors, const HostShare& share) {
  const auto count = static_cast<std::size_t>(std::max(1, share.count));
  const auto index = static_cast<std::size_t>(std::max(0, share.index)) % count;
  if (processors.size() < count) return processors;
  const auto at = [&](std::size_t i) {
    return processors.begin() + static_cast<std::ptrdiff_t>(i * processors.size() / count);
  };
  return {at(index), at(index + 1)};
}

}  // namespace

OwnerId Custodian::add_owner(Channel channel, bool is_bound) {
  const OwnerId id = next_owner_++;
  Owner& owner = owners_[id];
  owner.channel = std::move(channel);
  owner.is_bound = owner.is_trusted = is_bound;
  if (is_bound) {
    owner.channel.send(kGreeting);
    say_hello(id, owner);
  } else {
    owner.lost_at = Clock::now() + kClaimTime;
  }
  return id;
}

void Custodian::say_hello(OwnerId id, Owner& owner) {
  Hello hello;
  hello.host = host_name();
  if (!owner.is_bound)
    hello.from = peer_of(owner.channel.read_fd());
  else if (const auto launcher = kolo::environment("SLURM_LAUNCH_NODE_IPADDR"))  // srun is there
    hello.from = *launcher;
  else if (const auto connection = kolo::environment("SSH_CONNECTION"))  // "address port …"
    hello.from = connection->substr(0, connection->find(' '));
  hello.processors = usable_processors();
  tell(id, frame(Kind::hello, encode(hello)));
}

void Custodian::accept_owners() {
  Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) {
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
      accept_again_ = Clock::now() + kAcceptAgain;
    return;
  }
  std::vector<OwnerId> strangers;
  for (const auto& [id, owner] : owners_)
    if (!owner.is_trusted) strangers.push_back(id);
  // The one who has been silent for longest makes room.
  if (strangers.size() >= kMostStrangers) {
    const auto silent = std::find_if(strangers.begin(), strangers.end(),
                                     [this](OwnerId id) { return !owners_.at(id).has_spoken; });
    owners_.erase(silent == strangers.end() ? strangers.front() : *silent);
  }
  set_no_delay(socket.get());
  set_keep_alive(socket.get(), standing_->keep_alive);
  add_owner(
      Channel(std::move(socket), SecureStream(SecureStream::Side::answerer, standing_->secret)),
      /*is_bound=*/false);
}

void Custodian::read_orders(OwnerId id) {
  const auto found = owners_.find(id);
  if (found == owners_.end()) return;
  Owner& owner = found->second;
  owner.has_spoken = true;
  try {
    for (const Frame& order : owner.channel.receive()) obey(id, owner, order);
  } catch (const Error&) {
    owner.channel.close();  // it does not speak the protocol, or is not who it says
  }
  if (owner.channel.closed()) lose(id);
}

void Custodian::obey(OwnerId id, Owner& owner, const Frame& order) {
  const auto kind = static_cast<Kind>(order.type);
  if (!owner.is_trusted && kind != Kind::claim)
    throw_error(ErrorCode::failed_precondition, "an order came before the claim");
  renew_lease(owner);
  switch (kind) {
    case Kind::claim: welcome(id, owner, decode_claim(order.payload)); break;
    case Kind::environment:
      owner.environment = merge_environment(environment_, decode_environment(order.payload));
      break;
    case Kind::start:
    case Kind::end:
    case Kind::kill: obey_about_task(id, owner, order); break;
    case Kind::renew: break;
    case Kind::lease:
      owner.lease = decode_lease(order.payload);
      owner.lost_at.reset();
      renew_lease(owner);
      break;
    case Kind::family:
      // Others than this custodian may have left something, unless it stands.
      if (owner.is_bound) family_of_host_ = lock_family_of_host(order.payload);
      owner.family = order.payload;
      break;
    case Kind::finish: owner.is_finished = true; break;
    case Kind::reserve: reserve(id, owner, decode_reservation(order.payload)); break;
    case Kind::release:
      ledger_.give_back({id, decode_task_id(order.payload)});
      settle_reservations();
      break;
    case Kind::drain:
      ledger_.set_draining(ByteReader(order.payload).u8() != 0);
      ledger_changed_ = true;
      break;
    case Kind::measure: tell(id, frame(Kind::host_load, encode(measure_host()))); break;
    case Kind::shut_down:
      if (standing_ && !standing_->log.empty()) ::unlink(standing_->log.c_str());
      shut_down(id);
      break;
    case Kind::listen: begin_to_listen(id, owner, decode_listen_order(order.payload)); break;
    default: throw_error(ErrorCode::corruption, "an order of kind {} is unknown", order.type);
  }
}

void Custodian::obey_about_task(OwnerId id, Owner& owner, const Frame& order) {
  if (!owner.waiting.empty() || is_anything_left_of(owner.family, id)) {
    owner.waiting.push_back(order);
    return;
  }
  switch (static_cast<Kind>(order.type)) {
    case Kind::end: table_.end(id, decode_task_id(order.payload), Clock::now()); break;
    case Kind::kill: table_.kill(id, decode_task_id(order.payload), Clock::now()); break;
    default: start(id, owner, decode_task(order.payload)); break;
  }
}

bool Custodian::is_anything_left_of(const std::string& family, OwnerId but) const {
  return !family.empty() && std::any_of(outputs_.begin(), outputs_.end(), [&](const auto& entry) {
    return entry.first.first != but && entry.second.family == family;
  });
}

void Custodian::obey_those_that_waited() {
  std::vector<OwnerId> unintelligible;
  for (auto& [id, owner] : owners_) {
    if (owner.waiting.empty() || is_anything_left_of(owner.family, id)) continue;
    const auto orders = std::exchange(owner.waiting, {});
    try {
      for (const Frame& order : orders) obey_about_task(id, owner, order);
    } catch (const Error&) {
      unintelligible.push_back(id);
    }
  }
  for (const OwnerId id : unintelligible) lose(id);
}

void Custodian::welcome(OwnerId id, Owner& owner, const Claim& claim) {
  if (!standing_ || owner.is_trusted)
    throw_error(ErrorCode::failed_precondition, "nothing is to be claimed here");
  owner.is_trusted = true;
  owner.name = claim.owner;
  owner.lease = claim.lease;
  owner.lost_at.reset();
  renew_lease(owner);
  say_hello(id, owner);
  tell(id, frame(Kind::holdings, encode(ledger_.holdings())));
}

void Custodian::renew_lease(Owner& owner) {
  if (owner.lease.count() > 0) owner.lost_at = Clock::now() + owner.lease;
}

void Custodian::lose(OwnerId id) {
  const auto found = owners_.find(id);
  if (found == owners_.end()) return;
  table_.owner_lost(id, Clock::now());
  ledger_.give_back_all(id);
  const bool was_bound = found->second.is_bound;
  owners_.erase(found);  // what its tasks still write is read and thrown away
  // Others could use this custodian only as long as the one who started it was there.
  if (was_bound && listener_.valid() && !has_bound_owner()) shut_down(/*last=*/0);
}

void Custodian::lose_silent_owners(Time now) {
  std::vector<OwnerId> lost;
  for (const auto& [id, owner] : owners_)
    if (owner.lost_at && *owner.lost_at <= now) lost.push_back(id);
  for (const OwnerId id : lost) lose(id);
}

// --- reservations ---

void Custodian::reserve(OwnerId id, const Owner& owner, const ReservationOrder& order) {
  if (!standing_)
    throw_error(ErrorCode::failed_precondition, "nothing can be reserved of this custodian");
  if (const auto refusal = ledger_.reserve({id, order.id}, owner.name, order.want)) {
    tell(id, frame(Kind::refused, encode(Refusal{order.id, *refusal})));
    return;
  }
  tell(id, frame(Kind::reserved, encode(order.id)));
  ledger_changed_ = true;
}

void Custodian::give_from_reservation(OwnerId id, Task& task) const {
  if (task.reservation == 0) return;
  const Ledger::Grant* grant = ledger_.find({id, task.reservation});
  if (grant == nullptr)
    throw_error(ErrorCode::failed_precondition, "reservation {} is not held", task.reservation);
  // An owner that deals with its processors and GPUs itself has said which.
  if (!grant->holding.processors.empty() && task.cpus.empty() && task.share.bind_to == BindTo::none)
    task.cpus = share_of(grant->holding.processors, task.share);
  const bool has_gpus =
      std::any_of(task.environment.begin(), task.environment.end(),
                  [](const auto& entry) { return entry.starts_with("CUDA_VISIBLE_DEVICES="); });
  if (!grant->gpus.empty() && !has_gpus)
    task.environment.push_back(
        fmt::format("CUDA_VISIBLE_DEVICES={}", fmt::join(share_of(grant->gpus, task.share), ",")));
}

/// What was given back is free when nothing of its tasks is left.
void Custodian::settle_reservations() {
  if (!standing_) return;
  ledger_changed_ |= ledger_.free_ended([this](const Ledger::Key& key) {
    return std::any_of(outputs_.begin(), outputs_.end(), [&](const auto& entry) {
      return entry.first.first == key.first && entry.second.reservation == key.second;
    });
  });
  if (!std::exchange(ledger_changed_, false)) return;
  const std::string news = frame(Kind::holdings, encode(ledger_.holdings()));
  for (const auto& [id, owner] : owners_)
    if (owner.is_trusted) tell(id, news);
}

// --- the beginning and the end of a custodian that listens ---

void Custodian::begin_to_listen(OwnerId id, const Owner& owner, const ListenOrder& order) {
  if (!owner.is_bound || standing_)
    throw_error(ErrorCode::failed_precondition, "this custodian cannot be told to listen");
  Listening answer;
  try {
    Fd listener = listen_tcp(SocketAddress::from_numeric(address_for_others()));
    answer.address = local_address_of(listener.get()).str();
    Standing standing{order.secret, order.has, order.idle_time, order.keep_alive};
    if (standing.has.slots == 0) standing.has.slots = usable_processors();
    listen(std::move(listener), std::move(standing));
  } catch (const Error& error) {
    answer.error = error.message();
  }
  tell(id, frame(Kind::listening, encode(answer)));
}

/// Owners see the link close before their tasks end: what ends now ends because of this host, and
/// must not be taken for a failure of the task. `last` sees the end of everything; 0 = nobody.
void Custodian::shut_down(OwnerId last) {
  listener_.reset();
  std::vector<OwnerId> others;
  for (const auto& [id, owner] : owners_)
    if (id != last) others.push_back(id);
  for (const OwnerId id : others) lose(id);
  table_.owner_lost(last, Clock::now());
}

void Custodian::shut_down_because(const std::string& reason) {
  log::info("{}: ending {} of {}", reason, counted(outputs_.size(), "task"),
            counted(owners_.size(), "owner"));
  shut_down(/*last=*/0);
}

void Custodian::end_if_idle(Time now) {
  if (!standing_ || standing_->idle_time.count() == 0 || !listener_.valid()) return;
  const bool is_used = std::any_of(owners_.begin(), owners_.end(),
                                   [](const auto& entry) { return !entry.second.is_bound; });
  if (is_used || !table_.empty()) {
    idle_until_.reset();
  } else if (!idle_until_) {
    idle_until_ = now + standing_->idle_time;
  } else if (*idle_until_ <= now) {
    idle_until_.reset();
    shut_down_because("nobody has used this host for long enough");
  }
}

}  // namespace kolo::exec
