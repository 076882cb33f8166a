// The links from a launcher to its nodes: a custodian on each of them, and one on its own machine.
#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "exec/link.h"
#include "jobs/pilot/launcher.h"
#include "jobs/pilot/task_host.h"

namespace kolo::jobs {

class Pilot;

class NodeLinks final : public TaskHost {
 public:
  /// Starts the custodians and waits for their first words; nodes() shows which of them answer.
  /// Throws unavailable if none does.
  explicit NodeLinks(const LauncherOptions& options);

  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }

  void start(int node, const exec::Task& task) override;
  void end(int node, exec::TaskId task) override;
  void kill(int node, exec::TaskId task) override;

  /// What to poll, after what is in the list already.
  void add_to(std::vector<pollfd>& polls) const;
  /// Tells the pilot what has happened; `polls` are those that add_to() added.
  void tell(Pilot& pilot, const pollfd* polls);
  void flush();

 private:
  void wait_for_custodians();
  /// The names of the nodes that have not answered.
  [[nodiscard]] std::string silent() const;
  [[nodiscard]] exec::Link& link(int node);
  void receive(Pilot& pilot, int node);

  const LauncherOptions& options_;
  std::vector<Node> nodes_;
  std::vector<std::unique_ptr<exec::Link>> links_;  // of the nodes, and of the own machine
};

}  // namespace kolo::jobs
