#include "jobs/pilot/node_links.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/deadline.h"
#include "base/errors.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "exec/environment.h"
#include "jobs/pilot/pilot.h"

namespace kolo::jobs {
namespace {

constexpr std::size_t kPollsOfALink = 3;
/// Between looks whether the launcher was told to end.
constexpr std::chrono::milliseconds kSlice{50};

}  // namespace

NodeLinks::NodeLinks(const LauncherOptions& options) : options_(options) {
  for (const auto& node : options_.nodes) {
    nodes_.push_back({node.name, node.cores, node.gpus, !!node.take_link});
    if (node.take_link) {
      links_.push_back(node.take_link());
      links_.back()->set_environment(exec::forwardable(current_environment()));
    } else {
      links_.push_back(node.command.empty() ? exec::Link::to_this_machine()
                                            : exec::Link::through(node.command, node.name));
    }
  }
  wait_for_custodians();
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (!nodes_[i].answers)
      log::warning("node {} is not used: {}", nodes_[i].name,
                   links_[i]->closed() ? links_[i]->reason_of_end() : "kolo does not answer there");
  if (std::none_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.answers; }))
    throw_error(ErrorCode::unavailable, "no node can be used; the warnings above say why");
  links_.push_back(exec::Link::to_this_machine());
}

void NodeLinks::wait_for_custodians() {
  // Custodians at the end of ssh get this environment; others have it.
  const auto environment = exec::forwardable(current_environment());
  const Deadline deadline = Deadline::after(options_.start_timeout);
  for (;;) {
    std::vector<pollfd> polls;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      polls.push_back({nodes_[i].answers ? -1 : links_[i]->read_fd(), POLLIN, 0});
      polls.push_back({links_[i]->error_fd(), POLLIN, 0});
    }
    const bool all = std::all_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
      return node.answers || links_[static_cast<std::size_t>(&node - nodes_.data())]->closed();
    });
    if (all || deadline.passed()) return;
    if (is_interrupted())
      throw_error(ErrorCode::cancelled, "told to end while waiting for the nodes {}", silent());
    const auto slice = std::min<std::chrono::nanoseconds>(deadline.left(), kSlice);
    ::poll(polls.data(), polls.size(), Deadline::after(slice).poll_timeout_ms());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (polls[2 * i + 1].revents != 0) links_[i]->read_errors();
      if (polls[2 * i].revents == 0) continue;
      for (const auto& event : links_[i]->receive()) {
        const auto* hello = std::get_if<exec::Hello>(&event);
        if (hello == nullptr) continue;
        nodes_[i].answers = true;
        if (nodes_[i].cores == 0) nodes_[i].cores = hello->processors;
        if (options_.nodes[i].forward_environment) links_[i]->set_environment(environment);
      }
    }
  }
}

std::string NodeLinks::silent() const {
  std::vector<std::string_view> names;
  for (const auto& node : nodes_)
    if (!node.answers) names.push_back(node.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

exec::Link& NodeLinks::link(int node) {
  return node == kOwnMachine ? *links_.back() : *links_.at(static_cast<std::size_t>(node));
}

void NodeLinks::start(int node, const exec::Task& task) { link(node).start(task); }

void NodeLinks::end(int node, exec::TaskId task) { link(node).end(task); }
void NodeLinks::kill(int node, exec::TaskId task) { link(node).kill(task); }

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
  for (const auto& event : link(node).receive()) {
    const auto* end = std::get_if<exec::TaskEnd>(&event);
    if (end == nullptr) continue;
    if (end->error.empty())
      pilot.task_ended(end->id, end->status, end->tail);
    else
      pilot.task_ended(end->id, std::nullopt, end->error);
  }
  if (!link(node).closed()) return;
  const std::string name =
      node == kOwnMachine ? "the launcher's machine" : nodes_[static_cast<std::size_t>(node)].name;
  const std::string why = fmt::format("node {} was lost: {}", name, link(node).reason_of_end());
  // The launcher's own machine is needed as long as the launcher is.
  if (node == kOwnMachine) links_.back() = exec::Link::to_this_machine();
  pilot.node_lost(node, why);
}

void NodeLinks::flush() {
  for (const auto& link : links_) link->flush();
}

}  // namespace kolo::jobs
