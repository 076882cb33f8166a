// The launcher's end of the line to the worker of one node.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "jobs/worker_protocol.h"

namespace kolo::jobs {

class WorkerLink {
 public:
  /// Runs `command`, at whose other end a worker speaks. `node` names it in messages. Throws if the
  /// command itself cannot be run.
  WorkerLink(std::string node, const std::vector<std::string>& command);
  /// Closes the line; the worker ends its tasks by itself.
  ~WorkerLink();
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;

  [[nodiscard]] const std::string& node() const noexcept { return node_; }
  [[nodiscard]] bool closed() const noexcept { return !from_.valid(); }

  // Descriptors to poll; -1 = not now.
  [[nodiscard]] int read_fd() const noexcept { return from_.get(); }
  [[nodiscard]] int error_fd() const noexcept { return errors_.get(); }
  [[nodiscard]] int write_fd() const noexcept { return outbox_.empty() ? -1 : to_.get(); }

  void send(std::string_view frame) { outbox_ += frame; }
  /// Sends what can be sent now.
  void flush();
  /// Frames that have come; reads once.
  std::vector<Frame> receive();
  void read_errors();
  /// After closed(): why, in one line.
  std::string reason_of_end();

 private:
  void close();

  std::string node_;
  pid_t pid_ = -1;
  Fd to_, from_, errors_;
  std::string outbox_, noise_, error_text_;
  bool greeted_ = false;
  FrameParser parser_{kWorkerFrameLimit};
};

}  // namespace kolo::jobs
