// An owner of tasks, for tests: a link and everything that came over it.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "exec/link.h"

namespace kolo::exec {

class Owner {
 public:
  explicit Owner(std::unique_ptr<Link> link = Link::to_this_machine()) : link_(std::move(link)) {}

  Link& link() { return *link_; }
  void close() { link_.reset(); }

  /// `sh -c script`, with its output coming here.
  static Task shell(TaskId id, const std::string& script) {
    Task task;
    task.id = id;
    task.argv = {"sh", "-c", script};
    task.streams.to_owner = true;
    task.tell_exit = true;
    return task;
  }

  /// Takes what comes until `done` is true. False: it was not within the time.
  bool wait(const std::function<bool()>& done,
            std::chrono::seconds time = std::chrono::seconds(30)) {
    const Deadline deadline = Deadline::after(time);
    while (!done()) {
      if (link_->closed() || deadline.passed()) return false;
      pollfd polls[] = {{link_->read_fd(), POLLIN, 0}, {link_->write_fd(), POLLOUT, 0}};
      ::poll(polls, 2, deadline.poll_timeout_ms());
      link_->flush();
      if (polls[0].revents != 0)
        for (auto& event : link_->receive()) take(event);
    }
    return true;
  }
  bool wait_for_end(TaskId id) {
    return wait([this, id] { return ends.contains(id); });
  }
  bool wait_for_output(TaskId id, const std::string& text) {
    return wait([this, id, text] { return out[id].find(text) != std::string::npos; });
  }
  bool wait_for_close() {
    wait([] { return false; });
    return link_->closed();
  }

  std::map<TaskId, std::string> out, err;
  std::map<TaskId, int> exits;
  std::vector<TaskId> exit_order;
  std::map<TaskId, TaskEnd> ends;
  std::map<TaskId, int> times_told;
  std::set<ReservationId> reserved;
  std::map<ReservationId, std::string> refused;
  Holdings holdings;
  HostLoad load;

 private:
  void take(Event& event) {
    if (auto* output = std::get_if<Output>(&event))
      (output->stream == Stream::out ? out : err)[output->id] += output->bytes;
    if (auto* granted = std::get_if<Reserved>(&event)) reserved.insert(granted->id);
    if (auto* refusal = std::get_if<Refusal>(&event)) refused[refusal->id] = refusal->reason;
    if (auto* held = std::get_if<Holdings>(&event)) holdings = *held;
    if (auto* measured = std::get_if<HostLoad>(&event)) load = *measured;
    if (auto* exited = std::get_if<Exited>(&event)) {
      exits[exited->id] = exited->status;
      exit_order.push_back(exited->id);
    }
    if (auto* end = std::get_if<TaskEnd>(&event)) {
      ++times_told[end->id];
      ends[end->id] = *end;
    }
  }
  std::unique_ptr<Link> link_;
};

}  // namespace kolo::exec
