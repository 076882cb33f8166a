// The one who starts, watches and ends tasks on a node: `kolo worker`, a child of the launcher or
// at the end of ssh or srun.
//
// It is told what to do over its standard input and reports over its standard output. When that
// closes, for whatever reason, it ends all tasks: none outlives its launcher. If the worker itself
// is killed, the kernel kills the tasks. Each task leads a process group, and what is left of the
// group when its leader ends is killed.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "jobs/worker_protocol.h"

namespace kolo::jobs {

class Worker {
 public:
  /// Talks over these descriptors; they become non-blocking.
  Worker(Fd in, Fd out);

  /// Until the launcher has gone and nothing is left here. The process's exit status.
  int run();

 private:
  struct Task {
    std::uint64_t number = 0;
    std::string output;
    std::chrono::milliseconds grace{};
    std::optional<Deadline> kill_at;
  };

  void read_commands();
  void handle(const Frame& command);
  void start(const StartTask& task);
  pid_t spawn_task(const StartTask& task);
  void terminate(pid_t leader, Task& task);
  void kill_late();
  void reap();
  void send(std::string_view message);
  void flush();
  [[nodiscard]] int poll_timeout_ms() const;

  Fd in_, out_, signals_;
  FrameParser parser_{kWorkerFrameLimit};
  std::string outbox_;
  std::vector<std::string> environment_;
  std::map<pid_t, Task> tasks_;
  bool launcher_gone_ = false;
};

}  // namespace kolo::jobs
