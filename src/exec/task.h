// What a task is, and how it ends: the vocabulary that owners and custodians share.
//
// A task is one program with everything that it starts. An owner (a launcher, a study, a pilot)
// asks a custodian for tasks; see custodian.h for what the custodian promises about their ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kolo::exec {

/// Chosen by the owner; unique among the owner's living tasks.
using TaskId = std::uint64_t;

/// Chosen by the owner, as TaskId is; never 0.
using ReservationId = std::uint64_t;

enum class BindTo : std::uint8_t { none = 0, core = 1, socket = 2 };

/// The place of a task among the tasks that share a host.
struct HostShare {
  int index = 0;
  int count = 0;  ///< 0 = the task shares with nobody: no thread count is suggested to it
  BindTo bind_to =
      BindTo::none;  ///< the index-th core or socket, starting over when there are less
};

/// Where standard output and standard error go. Files are appended to; "" is nowhere.
struct Streams {
  bool to_owner = false;  ///< as Output events; the files are not used then
  std::filesystem::path out, err;
};

/// How long processes have between SIGTERM and SIGKILL; 0 = SIGKILL at once.
struct Grace {
  std::chrono::milliseconds end{5000};         ///< when the owner ends the task
  std::chrono::milliseconds left_behind{0};    ///< for what outlives the task's first process
  std::chrono::milliseconds owner_lost{5000};  ///< when the owner is gone
};

/// A descriptor of the owner's that the task inherits; only over a link to this machine.
struct PassedDescriptor {
  int fd = -1;           ///< in the owner
  std::string variable;  ///< tells the task its number
};

struct Task {
  TaskId id = 0;
  std::vector<std::string> argv;
  std::vector<std::string> environment;  ///< NAME=VALUE on top of what the owner set for all
  std::filesystem::path directory;       ///< where it starts; "" = where the custodian is
  Streams streams;
  std::vector<PassedDescriptor> descriptors;
  std::string secret;     ///< bytes of a Secret, inherited as a sealed file; "" = none
  std::vector<int> cpus;  ///< processors it may use; empty = all, or what `share` says
  HostShare share;
  Grace grace;
  bool tell_exit = false;  ///< an Exited event as soon as the first process ends
  /// Of a custodian that listens: what the task may use. Its processors, shared out as `share`
  /// says, are the task's. 0 = none.
  ReservationId reservation = 0;
};

/// The task's first process has ended; others of it may still run.
struct Exited {
  TaskId id = 0;
  int status = 0;  ///< as from waitpid
};

/// Nothing of the task is left. Told once for every task that was asked for.
struct TaskEnd {
  TaskId id = 0;
  int status = 0;     ///< as from waitpid; means nothing when `error` is set
  std::string tail;   ///< of a task that failed: the end of what it wrote to its files
  std::string error;  ///< why it could not be started, or what of it cannot be killed
};

enum class Stream : std::uint8_t { out = 1, err = 2 };

struct Output {
  TaskId id = 0;
  Stream stream = Stream::out;
  std::string bytes;  ///< empty: this stream has ended
};

}  // namespace kolo::exec
