#include "jobs/pilot/node_links.h"

#include <algorithm>

#include "base/deadline.h"
#include "base/errors.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "jobs/pilot/pilot.h"
#include "exec/environment.h"

namespace kolo::jobs {
namespace {

constexpr std::size_t kPollsOfALink = 3;

}  // namespace

NodeLinks::NodeLinks(const LauncherOptions& options) : options_(options) {
  for (const auto& node : options_.nodes) {
    links_.push_back(std::make_unique<WorkerLink>(node.name, node.command));
    nodes_.push_back({node.name, node.cores, node.gpus, false});
  }
  wait_for_workers();
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (!nodes_[i].answers)
      log::warning("node {} is not used: {}", nodes_[i].name,
                   links_[i]->closed() ? links_[i]->reason_of_end() : "its worker does not answer");
  if (std::none_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.answers; }))
    throw_error(ErrorCode::unavailable, "no node can be used; the warnings above say why");
  links_.push_back(std::make_unique<WorkerLink>("the launcher's machine", options_.head_command));
}

void NodeLinks::wait_for_workers() {
  // Workers at the end of ssh get this environment; others have it.
  const std::string environment =
      frame(WorkerMessage::environment, encode(exec::forwardable(current_environment())));
  const Deadline deadline = Deadline::after(options_.start_timeout);
  for (;;) {
    std::vector<pollfd> polls;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      polls.push_back({nodes_[i].answers ? -1 : links_[i]->read_fd(), POLLIN, 0});
    const bool any = std::any_of(polls.begin(), polls.end(), [](auto& p) { return p.fd >= 0; });
    if (!any || deadline.passed()) return;
    ::poll(polls.data(), polls.size(), deadline.poll_timeout_ms());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (polls[i].revents == 0) continue;
      for (const auto& message : links_[i]->receive()) {
        if (message.type != static_cast<std::uint8_t>(WorkerMessage::hello)) continue;
        nodes_[i].answers = true;
        if (nodes_[i].cores == 0) nodes_[i].cores = decode_hello(message.payload).processors;
        if (options_.nodes[i].forward_environment) links_[i]->send(environment);
        links_[i]->flush();
      }
    }
  }
}

WorkerLink& NodeLinks::link(int node) {
  return node == kOwnMachine ? *links_.back() : *links_.at(static_cast<std::size_t>(node));
}

void NodeLinks::start(int node, const StartTask& task) {
  link(node).send(frame(WorkerMessage::start, encode(task)));
  link(node).flush();
}

void NodeLinks::end(int node, std::uint64_t task) {
  link(node).send(frame(WorkerMessage::end, encode_task(task)));
  link(node).flush();
}

void NodeLinks::add_to(std::vector<pollfd>& polls) const {
  for (const auto& link : links_) {
    polls.push_back({link->read_fd(), POLLIN, 0});
    polls.push_back({link->error_fd(), POLLIN, 0});
    polls.push_back({link->write_fd(), POLLOUT, 0});
  }
}

void NodeLinks::tell(Pilot& pilot, const pollfd* polls) {
  for (std::size_t i = 0; i < links_.size(); ++i, polls += kPollsOfALink) {
    if (polls[1].revents != 0) links_[i]->read_errors();
    if (polls[0].revents != 0)
      receive(pilot, i + 1 == links_.size() ? kOwnMachine : static_cast<int>(i));
  }
}

void NodeLinks::receive(Pilot& pilot, int node) {
  for (const auto& message : link(node).receive()) {
    switch (static_cast<WorkerMessage>(message.type)) {
      case WorkerMessage::ended: {
        const TaskEnd end = decode_end(message.payload);
        pilot.task_ended(end.task, end.status, end.tail);
        break;
      }
      case WorkerMessage::failed: {
        const TaskFailure failure = decode_failure(message.payload);
        pilot.task_ended(failure.task, std::nullopt, failure.why);
        break;
      }
      default: break;  // the hello of the own machine; ends of lines
    }
  }
  if (!link(node).closed()) return;
  const std::string why =
      fmt::format("node {} was lost: {}", link(node).node(), link(node).reason_of_end());
  // The launcher's own machine is needed as long as the launcher is.
  if (node == kOwnMachine)
    links_.back() = std::make_unique<WorkerLink>("the launcher's machine", options_.head_command);
  pilot.node_lost(node, why);
}

void NodeLinks::flush() {
  for (const auto& link : links_) link->flush();
}

}  // namespace kolo::jobs
