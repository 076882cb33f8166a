#include "launch/elastic/group_leader.h"

#include <cstring>
#include <map>

#include "base/env.h"
#include "base/errors.h"
#include "kolo/random.h"

namespace kolo::launch::elastic {
namespace {

Time now() { return Deadline::Clock::now().time_since_epoch(); }

/// The workers have the same environment, unless they tell something else.
RosterOptions with_timeout(RosterOptions options) {
  for (const char* name : {"GLOO_TIMEOUT_SECONDS", "TIMEOUT_SECONDS"})
    if (const auto timeout = setting_seconds(name); timeout && timeout->count() > 0)
      options.group_timeout = *timeout;
  return options;
}

}  // namespace

std::function<double()> random_draw() {
  std::uint64_t seed = 0;
  std::memcpy(&seed, Secret::random().bytes().data(), sizeof seed);
  return [random = Random(seed)]() mutable { return random.uniform(); };
}

GroupLeader::GroupLeader(const RosterOptions& options, HostPool hosts, const SocketAddress& listen,
                         LeaderOrders orders)
    : orders_(std::move(orders)),
      roster_(with_timeout(options), std::move(hosts)),
      lobby_(secret_, {listen}, [this](int worker) { return roster_.expects(worker); }) {}

// --- what can happen -----------------------------------------------------------------------------

void GroupLeader::hosts_changed(std::vector<Host> hosts) {
  carry_out(roster_.hosts_changed(std::move(hosts), now()));
}

void GroupLeader::ended(int worker, int code, const std::string& how) {
  hear();  // whether it was done, left on notice or failed
  lobby_.forget(worker);
  carry_out(roster_.ended(worker, code, how, now()));
}

void GroupLeader::refused(int worker) {
  lobby_.forget(worker);
  carry_out(roster_.refused(worker, now()));
}

void GroupLeader::hear() {
  for (const auto& [worker, message] : lobby_.receive()) {
    if (const auto* ready = std::get_if<comm::elastic::Ready>(&message))
      carry_out(roster_.ready(worker, *ready, now()));
    else if (const auto* finished = std::get_if<comm::elastic::Finished>(&message))
      carry_out(roster_.finished(worker, *finished, now()));
    else if (std::holds_alternative<comm::elastic::Alive>(message))
      carry_out(roster_.alive(worker, now()));
    else if (const auto* timeout = std::get_if<comm::elastic::Timeout>(&message))
      roster_.timeout(worker, timeout->of_operations);
    else
      carry_out(roster_.leaving(worker, now()));
  }
}

void GroupLeader::keep_time() {
  if (const auto tick = roster_.next_tick(); !tick || *tick > now()) return;
  hear();  // whoever has spoken while this process was held up is not silent
  carry_out(roster_.tick(now()));
}

std::optional<Deadline> GroupLeader::next() const {
  const auto tick = roster_.next_tick();
  if (!tick) return std::nullopt;
  return Deadline::at(Deadline::Clock::time_point(*tick));
}

// --- what the roster decides ---------------------------------------------------------------------

/// What cannot be done, for want of descriptors perhaps, ends this job: its owner may have others.
void GroupLeader::carry_out(const Actions& actions) {
  try {
    for (const Action& action : actions)
      std::visit([this](const auto& one) { carry_out(one); }, action);
  } catch (const std::exception& error) {
    if (roster_.is_over()) throw;
    roster_.stop();
    const auto* own = dynamic_cast<const Error*>(&error);
    orders_.end(1, own != nullptr ? own->message() : error.what());
  }
}

std::unique_ptr<comm::rendezvous::Server> GroupLeader::meeting_place(Generation generation,
                                                                     int size) {
  comm::rendezvous::ServerOptions options;
  options.size = size;
  options.secret = comm::elastic::secret_of(secret_, generation);
  options.listen = {door().with_port(0)};
  options.on_activity = orders_.heard;
  try {
    return std::make_unique<comm::rendezvous::Server>(std::move(options));
  } catch (const std::exception& error) {
    throw_error(ErrorCode::unavailable, "generation {} has no place to meet: {}", generation,
                error.what());
  }
}

void GroupLeader::carry_out(const FormGroup& action) {
  members_ = action.members;
  has_formed_group_ = true;
  server_.reset();  // with it goes whatever still speaks of the last group
  std::map<std::string, int> number_of_host;
  comm::elastic::GroupPlan plan;
  plan.generation = action.generation;
  const int size = static_cast<int>(members_.size());
  if (size > 1) {
    server_ = meeting_place(action.generation, size);
    plan.port = server_->addresses().front().port();
  }
  orders_.formed(action.generation, members_);
  for (const int worker : members_)
    plan.host_of_rank.push_back(
        number_of_host
            .try_emplace(roster_.slot_of(worker).host, static_cast<int>(number_of_host.size()))
            .first->second);
  for (plan.rank = 0; plan.rank < size; ++plan.rank)
    lobby_.send(members_[static_cast<std::size_t>(plan.rank)], plan);
}

void GroupLeader::carry_out(const RequestChange& action) {
  for (const int worker : members_) lobby_.send(worker, comm::elastic::Change{action.generation});
}

void GroupLeader::carry_out(const AnnounceLoss& action) {
  using comm::DepartureKind;
  const auto kind = action.has_failed ? DepartureKind::failed : DepartureKind::finished;
  if (server_) server_->announce({action.rank, action.reason, kind});
}

}  // namespace kolo::launch::elastic
