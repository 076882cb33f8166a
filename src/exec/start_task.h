// A task becomes a process.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "base/fd.h"
#include "exec/environment.h"
#include "exec/task.h"

namespace kolo::exec {

struct StartedTask {
  pid_t leader = -1;
  Fd out, err;  ///< our ends, for streams that go to the owner; non-blocking
  /// The file whose end is told when the task fails, and where the task began to write to it.
  std::filesystem::path said_in;
  std::size_t said_from = 0;
};

/// What a host adds to its tasks.
struct TaskGround {
  const Environment& environment;  ///< below the task's own
  std::string mark;                ///< see process_tree.h
  int family_lock = -1;            ///< inherited by every task; -1 = none
  int secret = -1;                 ///< the sealed file that holds the task's secret
};

/// Starts the program as the leader of a process group of its own; the kernel kills it when this
/// process ends. `passed` are the task's descriptors in this process, in the task's order.
/// Throws not_found or io, saying what cannot be run.
StartedTask start_task(const Task& task, const std::vector<Fd>& passed, const TaskGround& ground);

}  // namespace kolo::exec
