// Workers that are asked for before their host has answered wait in its entry, and begin() starts
// them all when it does. The address at which workers on another host find the rendezvous is chosen
// then, since it depends on how that host sees the launcher. A worker leaves two sets at different
// times: `alive` when its program exits, which the group must hear at once, and `unwaited` when
// nothing of it is left, which decides whether the job may end. lose() erases the host before it
// tells of its workers, since whoever is told may start others on the same host. For the same
// reason work() looks each host up by name.
#include "launch/elastic/worker_hosts.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/errors.h"
#include "base/subprocess.h"
#include "launch/meeting_place.h"

namespace kolo::launch::elastic {
namespace {

using namespace std::chrono_literals;

/// After this long past the grace time, a host that has not confirmed the end is given up.
constexpr auto kConfirmationTime = 10s;
constexpr int kPollsPerHost = 3;

}  // namespace

WorkerHosts::WorkerHosts(const ParallelJob& job, const Secret& secret, const SocketAddress& door,
                         HostEvents events)
    : job_(job),
      secret_(secret),
      door_(door),
      events_(std::move(events)),
      lease_(exec::host_lease_setting()),
      renew_(Deadline::after(lease_ / 4)) {}

// --- orders --------------------------------------------------------------------------------------

void WorkerHosts::start(int worker, const HostPool::Slot& slot) {
  if (is_ending_) return;
  Entry& host = hosts_[slot.host];
  host.asked[worker] = slot;
  if (!host.link) {
    try {
      connect(slot.host, host);
    } catch (const Error& error) {
      lose(slot.host, error.message());
    }
  } else if (host.is_ready) {
    begin(slot.host, host);
  }
}

void WorkerHosts::kill(int worker) {
  for (auto& [name, host] : hosts_) {
    if (host.unwaited.contains(worker)) return host.link->kill(static_cast<exec::TaskId>(worker));
    if (host.asked.erase(worker) != 0) return events_.lost(worker, "was not needed any longer");
  }
}

void WorkerHosts::end_all(bool at_once) {
  is_ending_ = true;
  for (auto& [name, host] : hosts_) {
    host.asked.clear();
    for (const int worker : host.unwaited) {
      const auto task = static_cast<exec::TaskId>(worker);
      at_once ? host.link->kill(task) : host.link->end(task);
    }
  }
  give_up_ = Deadline::after(at_once ? std::chrono::milliseconds(kConfirmationTime)
                                     : job_.grace + kConfirmationTime);
}

bool WorkerHosts::anything_left() const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [](const auto& entry) { return !entry.second.unwaited.empty(); });
}

void WorkerHosts::connect(const std::string& name, Entry& host) {
  if (job_.open_link) {  // hello comes over the link
    host.link = job_.open_link({name}).link;
    host.link->set_lease(lease_);
    host.answer_by = Deadline::after(job_.start_timeout);
    return;
  }
  host.is_local = is_this_machine(name);
  if (host.is_local) {
    host.link = exec::Link::to_this_machine();
    const bool is_any = door_.same_host(SocketAddress::from_numeric("0.0.0.0"));
    host.door = (is_any ? SocketAddress::loopback().with_port(door_.port()) : door_).str();
    return begin(name, host);
  }
  const auto command = exec::ssh_command(job_.ssh, name);
  detail("connecting: {}", fmt::join(command, " "));
  host.link = exec::Link::through(command, name);
  host.link->set_lease(lease_);
  host.answer_by = Deadline::after(job_.start_timeout);
}

/// The host answers: what was asked for is started.
void WorkerHosts::begin(const std::string& name, Entry& host) {
  host.answer_by.reset();
  if (!std::exchange(host.is_ready, true)) {
    Environment environment;
    if (!host.is_local) environment = exec::forwardable(current_environment());
    host.link->set_environment(merge_environment(std::move(environment), job_.environment));
  }
  for (const auto& [worker, slot] : std::exchange(host.asked, {}))
    start_task(name, host, worker, slot);
}

void WorkerHosts::start_task(const std::string& name, Entry& host, int worker,
                             const HostPool::Slot& slot) {
  exec::Task task;
  task.id = static_cast<exec::TaskId>(worker);
  task.argv = job_.argv;
  task.environment = {fmt::format("KOLO_WORKER={}", worker),
                      fmt::format("KOLO_RENDEZVOUS={}", host.door),
                      fmt::format("KOLO_HOSTNAME={}", name)};
  task.directory = job_.directory;
  task.streams.to_owner = true;
  if (host.is_local) task.descriptors = job_.descriptors;
  task.secret = secret_.bytes();
  task.share = {slot.index, slot.slots, job_.bind_to};
  task.grace = {job_.grace, job_.grace, job_.grace};
  task.tell_exit = true;
  if (job_.open_link) {
    task.reservation = task.id + 1;
    host.link->reserve(task.reservation, {.slots = 1});
  }
  host.alive.insert(worker);
  host.unwaited.insert(worker);
  detail("starting worker {} on {}", worker, name);
  host.link->start(task);
}

// --- what happens --------------------------------------------------------------------------------

void WorkerHosts::add_polls(std::vector<pollfd>& polls, bool may_read) {
  polled_.clear();
  for (const auto& [name, host] : hosts_) {
    polled_.push_back(name);
    polls.push_back({may_read ? host.link->read_fd() : -1, POLLIN, 0});
    polls.push_back({host.link->write_fd(), POLLOUT, 0});
    polls.push_back({host.link->error_fd(), POLLIN, 0});
  }
}

void WorkerHosts::work(const pollfd* polls) {
  for (const std::string& name : std::exchange(polled_, {})) {
    const auto host = hosts_.find(name);
    if (host != hosts_.end()) {
      if (polls[2].revents != 0) host->second.link->read_errors();
      if (polls[1].revents != 0) host->second.link->flush();
      if (polls[0].revents != 0) receive(name, host->second);
    }
    polls += kPollsPerHost;
  }
  check_deadlines();
}

std::optional<Deadline> WorkerHosts::next() const {
  std::optional<Deadline> next = give_up_;
  const auto consider = [&](Deadline other) {
    if (!next || other.when() < next->when()) next = other;
  };
  for (const auto& [name, host] : hosts_) {
    if (!host.is_local) consider(renew_);
    if (host.answer_by) consider(*host.answer_by);
  }
  return next;
}

void WorkerHosts::receive(const std::string& name, Entry& host) {
  try {
    for (auto& event : host.link->receive()) handle(name, host, event);
  } catch (const Error& error) {
    host.link->kill_command();
    return lose(name, error.message());
  }
  if (host.link->closed()) lose(name, host.link->reason_of_end());
}

void WorkerHosts::handle(const std::string& name, Entry& host, exec::Event& event) {
  if (const auto* hello = std::get_if<exec::Hello>(&event)) {
    if (host.is_ready) return;
    const auto addresses =
        choose_meeting_addresses({{name, true, hello->from}}, job_.network_interface);
    host.door = addresses.listen.front().with_port(door_.port()).str();
    begin(name, host);
  } else if (const auto* output = std::get_if<exec::Output>(&event)) {
    events_.output(*output);
  } else if (const auto* refusal = std::get_if<exec::Refusal>(&event)) {
    host.refused.insert(static_cast<int>(refusal->id) - 1);  // the end of its task follows
  } else if (const auto* exited = std::get_if<exec::Exited>(&event)) {
    const int worker = static_cast<int>(exited->id);
    if (host.alive.erase(worker) != 0) events_.exited(worker, exited->status);
  } else if (const auto* end = std::get_if<exec::TaskEnd>(&event)) {
    const int worker = static_cast<int>(end->id);
    host.unwaited.erase(worker);
    if (job_.open_link) host.link->release(end->id + 1);
    if (host.refused.erase(worker) != 0 && host.alive.erase(worker) != 0)
      events_.refused(worker);
    else if (host.alive.erase(worker) != 0)
      events_.lost(worker, "could not be started: " + end->error);
    else if (!end->error.empty())
      events_.say(fmt::format("worker {} on {} has ended, but {}", worker, name, end->error));
  }
}

void WorkerHosts::lose(const std::string& name, const std::string& reason) {
  const auto found = hosts_.find(name);
  if (found == hosts_.end()) return;
  std::set<int> lost = std::move(found->second.alive);
  for (const auto& [worker, slot] : found->second.asked) lost.insert(worker);
  hosts_.erase(found);
  if (lost.empty()) return;
  if (!is_ending_) events_.say(fmt::format("host {} was lost: {}", name, reason));
  for (const int worker : lost)
    events_.lost(worker, fmt::format("was lost with its host: {}", reason));
}

void WorkerHosts::check_deadlines() {
  if (renew_.passed()) {
    renew_ = Deadline::after(lease_ / 4);
    for (auto& [name, host] : hosts_)
      if (!host.is_local) host.link->renew();
  }
  std::vector<std::string> silent;
  for (const auto& [name, host] : hosts_)
    if (host.answer_by && host.answer_by->passed()) silent.push_back(name);
  for (const auto& name : silent) {
    hosts_.at(name).link->kill_command();
    lose(name, fmt::format("no answer within {:g} s; --start-timeout gives more time",
                           std::chrono::duration<double>(job_.start_timeout).count()));
  }
  if (!give_up_ || !give_up_->passed()) return;
  give_up_.reset();
  for (auto& [name, host] : hosts_) {
    if (host.unwaited.empty()) continue;
    events_.say(fmt::format("{} did not confirm that its workers have ended", name));
    host.link->kill_command();
    host.unwaited.clear();
  }
}

}  // namespace kolo::launch::elastic
