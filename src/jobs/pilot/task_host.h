// Where a pilot's tasks run.
#pragma once

#include "exec/task.h"

namespace kolo::jobs {

/// Stands for the machine of the launcher itself, where hooks and runners are started.
inline constexpr int kOwnMachine = -1;

/// Starts and ends tasks on nodes. It does not block: how tasks end, and that a node is lost, is
/// told to the pilot later.
class TaskHost {
 public:
  virtual ~TaskHost() = default;
  /// `node` is an index into the launcher's nodes, or kOwnMachine.
  virtual void start(int node, const exec::Task& task) = 0;
  /// SIGTERM, and SIGKILL after the task's grace time.
  virtual void end(int node, exec::TaskId task) = 0;
  /// SIGKILL.
  virtual void kill(int node, exec::TaskId task) = 0;
};

}  // namespace kolo::jobs
