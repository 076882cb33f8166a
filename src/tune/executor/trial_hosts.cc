#include "tune/executor/trial_hosts.h"

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "cluster/members.h"
#include "cluster/placing.h"
#include "exec/environment.h"
#include "launch/allocation.h"

namespace kolo::tune {
namespace {

using namespace std::chrono_literals;

/// Between attempts to reach a host that is lost. On this machine only the start of a process can
/// have failed.
constexpr auto kTryAgain = 10s;
constexpr auto kTryAgainHere = 200ms;
/// Between looks for new hosts of a cluster.
constexpr auto kLook = 1s;
/// Between looks whether the study was told to end.
constexpr int kSliceMs = 50;

}  // namespace

TrialHosts::TrialHosts(TrialHostsSetup setup) : setup_(std::move(setup)) {
  if (setup_.hosts.empty()) setup_.hosts = {{"localhost", 1}};
  if (!setup_.cluster.empty()) {
    cluster_ = cluster::load_cluster(setup_.cluster);
    look_ = Deadline::after(kLook);
  }
  for (const auto& [name, slots] : setup_.hosts) {
    TrialHost& host = hosts_.emplace_back(TrialHost{.name = name, .slots = slots});
    if (cluster_) continue;
    host.way = way_to(name);
    host.is_local = host.way.empty();
  }
  for (auto& host : hosts_) open(host);
  wait_for_all();
  if (std::any_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return !host.is_local; }))
    renew_ = Deadline::after(setup_.lease / 4);
}

void TrialHosts::wait_for_all() {
  while (std::any_of(hosts_.begin(), hosts_.end(),
                     [](const auto& host) { return !host.is_ready(); })) {
    std::vector<pollfd> polls;
    add_polls(polls);
    const int left = poll_timeout_ms();
    ::poll(polls.data(), polls.size(), left < 0 ? kSliceMs : std::min(left, kSliceMs));
    for (auto& host : hosts_) {
      if (!host.is_ready() && is_interrupted())
        throw_error(ErrorCode::cancelled, "told to end while waiting for an answer of {}",
                    host.name);
      receive(host);
      if (const auto why = loss_of(host))
        throw_error(ErrorCode::unavailable, "cannot run trials on {}: {}", host.name, *why);
    }
  }
}

std::vector<std::string> TrialHosts::way_to(const std::string& host) const {
  if (!setup_.batch_system.empty())
    return launch::custodian_command(setup_.batch_system, host, setup_.ssh.remote_kolo);
  if (launch::is_this_machine(host)) return {};
  return exec::ssh_command(setup_.ssh, host);
}

std::vector<launch::Placement> TrialHosts::take(int nodes, int ranks) {
  std::vector<TrialHost*> order;
  for (auto& host : hosts_) order.push_back(&host);
  std::stable_sort(order.begin(), order.end(), [](const TrialHost* a, const TrialHost* b) {
    if (a->is_ready() != b->is_ready()) return a->is_ready();
    return a->slots - a->load > b->slots - b->load;
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(nodes)));
  // The first rank reports, and hears what the study says only from here.
  std::stable_partition(order.begin(), order.end(),
                        [](const auto* host) { return host->is_local; });
  return place(order, ranks);
}

std::vector<launch::Placement> TrialHosts::place(const std::vector<TrialHost*>& hosts, int ranks) {
  std::vector<launch::Placement> placements;
  for (auto* host : hosts) {
    placements.push_back(
        {host->name, static_cast<int>(placements.size()) * ranks, ranks, host->is_local});
    host->load += ranks;
  }
  return placements;
}

void TrialHosts::add_rank(std::vector<launch::Placement>& placements) {
  const launch::Placement one = take(1, 1).front();
  const auto known = std::find_if(placements.begin(), placements.end(),
                                  [&](const auto& other) { return other.host == one.host; });
  if (known == placements.end())
    placements.push_back(one);
  else
    ++known->ranks;
}

std::vector<launch::Placement> TrialHosts::take_free(int nodes, int ranks) {
  std::vector<TrialHost*> fitting;
  for (auto& host : hosts_)
    if (host.is_ready() && cluster::room_for(host.holdings, setup_.each_rank) >= ranks)
      fitting.push_back(&host);
  if (fitting.size() < static_cast<std::size_t>(nodes)) return {};
  std::stable_sort(fitting.begin(), fitting.end(), [](const TrialHost* a, const TrialHost* b) {
    return a->holdings.free.slots > b->holdings.free.slots;
  });
  fitting.resize(static_cast<std::size_t>(nodes));
  return place(fitting, ranks);
}

std::unique_ptr<cluster::Gang> TrialHosts::reserve(
    const std::vector<launch::Placement>& placements) {
  std::vector<cluster::Gang::Part> parts;
  for (auto& host : hosts_)  // everybody asks in the order of the cluster
    for (const auto& placement : placements)
      if (placement.host == host.name)
        parts.push_back({host.link.get(), cluster::times(setup_.each_rank, placement.ranks)});
  return std::make_unique<cluster::Gang>(std::move(parts), next_reservation_++);
}

void TrialHosts::give_back(const std::vector<launch::Placement>& placements) {
  for (const auto& placement : placements) at(placement.host).load -= placement.ranks;
}

TrialHost& TrialHosts::at(const std::string& name) {
  return *std::find_if(hosts_.begin(), hosts_.end(),
                       [&](const TrialHost& host) { return host.name == name; });
}

void TrialHosts::open(TrialHost& host) {
  if (host.link) return;
  if (host.is_local) {
    host.link = exec::Link::to_this_machine(setup_.study_directory);
  } else {
    if (cluster_) {
      cluster_ = cluster::load_cluster(setup_.cluster);  // the host may stand elsewhere by now
      const std::string study = setup_.study_directory.filename();
      host.link = cluster::begin_link(*cluster_, cluster_->at(host.name),
                                      cluster::owner_name("study " + study), setup_.lease);
    } else {
      host.link = exec::Link::through(host.way, host.name);
      host.link->set_lease(setup_.lease);
    }
    host.link->set_family(setup_.study_directory.string());
    host.link->set_environment(exec::forwardable(current_environment()));
    host.answer_by = Deadline::after(setup_.start_timeout);
  }
  host.try_again.reset();
}

std::vector<exec::Event> TrialHosts::receive(TrialHost& host) {
  if (host.link->error_fd() >= 0) host.link->read_errors();
  auto events = host.link->receive();
  for (const auto& event : events) {
    if (const auto* holdings = std::get_if<exec::Holdings>(&event)) host.holdings = *holdings;
    const auto* hello = std::get_if<exec::Hello>(&event);
    if (hello == nullptr || host.is_local) continue;
    host.hello = *hello;
    host.answer_by.reset();
    host.warned_of.clear();
  }
  return events;
}

std::optional<std::string> TrialHosts::loss_of(TrialHost& host) {
  if (host.link->closed()) return host.link->reason_of_end();  // here: when nothing is left
  if (!host.answer_by || !host.answer_by->passed()) return std::nullopt;
  host.link->kill_command();
  return fmt::format("it did not answer within {:.5g} s",
                     std::chrono::duration<double>(setup_.start_timeout).count());
}

void TrialHosts::lose(TrialHost& host) {
  host.link.reset();
  host.hello.reset();
  host.answer_by.reset();
  host.try_again = Deadline::after(host.is_local ? 0ms : std::chrono::milliseconds(kTryAgain));
}

void TrialHosts::add_polls(std::vector<pollfd>& polls) const {
  for (const auto& host : hosts_) {
    if (!host.link) continue;
    polls.push_back({host.link->read_fd(), POLLIN, 0});
    polls.push_back({host.link->write_fd(), POLLOUT, 0});
    polls.push_back({host.link->error_fd(), POLLIN, 0});
  }
}

void TrialHosts::take_new_members() {
  look_ = Deadline::after(kLook);
  try {
    cluster_ = cluster::load_cluster(setup_.cluster);
  } catch (const Error&) {
    return;  // it was ended: the links say so
  }
  for (const auto& member : cluster_->members) {
    const bool is_known = std::any_of(hosts_.begin(), hosts_.end(), [&](const TrialHost& host) {
      return host.name == member.host;
    });
    if (is_known || !member.address) continue;
    hosts_.push_back({.name = member.host, .slots = 0, .try_again = Deadline::after(0ms)});
  }
}

int TrialHosts::trials_at_once(int nodes, int ranks) const {
  std::vector<launch::Host> known;
  for (const auto& host : hosts_)
    known.push_back({host.name, host.holdings.total.slots > 0
                                    ? cluster::slots_for(host.holdings, setup_.each_rank)
                                    : host.slots * std::max(1, setup_.each_rank.slots)});
  return launch::groups_at_once(known, nodes, ranks * std::max(1, setup_.each_rank.slots));
}

void TrialHosts::keep_up() {
  if (look_ && look_->passed()) take_new_members();
  const bool is_time_to_renew = renew_ && renew_->passed();
  if (is_time_to_renew) renew_ = Deadline::after(setup_.lease / 4);
  for (auto& host : hosts_) {
    if (host.link && is_time_to_renew && !host.is_local) host.link->renew();
    if (host.link && host.link->write_fd() >= 0) host.link->flush();
    if (!host.try_again || !host.try_again->passed()) continue;
    try {
      open(host);
    } catch (const Error& error) {
      if (std::exchange(host.warned_of, error.message()) != error.message())
        log::warning("{} cannot run trials now: {}", host.is_local ? "this machine" : host.name,
                     error.message());
      host.try_again =
          Deadline::after(host.is_local ? kTryAgainHere : std::chrono::milliseconds(kTryAgain));
    }
  }
}

int TrialHosts::poll_timeout_ms() const {
  int timeout = -1;
  const auto until = [&timeout](const std::optional<Deadline>& deadline) {
    if (!deadline) return;
    const int left = deadline->poll_timeout_ms();
    timeout = timeout < 0 ? left : std::min(timeout, left);
  };
  until(renew_);
  until(look_);
  for (const auto& host : hosts_) {
    until(host.answer_by);
    until(host.try_again);
  }
  return timeout;
}

bool TrialHosts::needs_poll() const {
  return std::any_of(hosts_.begin(), hosts_.end(), [](const TrialHost& host) {
    return !host.is_ready() || host.link->write_fd() >= 0;
  });
}

}  // namespace kolo::tune
