// A helper program that runs while its owner does other things. What it writes is gathered without
// waiting for it. run_command() (subprocess.h) waits for one.
//
//   RunningCommand command(options);
//   … poll command.fd(), with a deadline …
//   if (command.work()) use(command.result());
#pragma once

#include <sys/types.h>

#include <initializer_list>
#include <string>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/subprocess.h"

namespace kolo {

struct CommandOptions : SpawnOptions {
  bool gathers_output = true, gathers_errors = true;  ///< instead of what SpawnOptions says
};

/// For one thread at a time.
class RunningCommand {
 public:
  /// Throws as spawn().
  explicit RunningCommand(CommandOptions options);
  /// Kills it, with the process group if it has one of its own, and waits for it.
  ~RunningCommand();
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  /// To be polled for reading where one stream is gathered; -1 = nothing tells when to come back.
  [[nodiscard]] int fd() const noexcept;
  /// Takes what it has written, at most 64 KiB of a stream. Whether the program has ended and
  /// nobody writes to what is gathered any more.
  bool work();
  /// What has come so far; all of it, with the status, once work() was true.
  [[nodiscard]] const CommandResult& result() const noexcept { return result_; }

  /// Waits until all have ended. Throws timeout, naming the first that has not.
  static void wait(std::initializer_list<RunningCommand*> commands, Deadline deadline);

 private:
  void kill_group() const noexcept;

  std::string program_;
  pid_t pid_ = -1;  // -1: waited for
  bool has_group_;
  Fd output_, errors_;  // valid until their ends
  Fd end_;              // readable when the program has ended
  CommandResult result_;
};

}  // namespace kolo
