// Runs one job from its start to its end: the heart of `kolo run`.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/binding.h"
#include "exec/link.h"
#include "exec/ssh.h"
#include "exec/task.h"
#include "launch/environment.h"
#include "launch/hosts.h"
#include "launch/output.h"

namespace kolo::launch {

using exec::BindTo;
using exec::parse_bind_to;
using exec::SshOptions;

/// A custodian that has said hello, or of an elastic job one that will.
struct OpenedLink {
  std::unique_ptr<exec::Link> link;
  exec::Hello hello;
};

/// A program and the ranks that run it.
struct ParallelJob {
  std::vector<std::string> argv;
  std::vector<Placement> placements;
  std::filesystem::path directory;  ///< where ranks start, on every host
  Environment environment;          ///< NAME=VALUE for every rank, on top of what it has anyway
  std::vector<exec::PassedDescriptor> descriptors;  ///< that ranks of this machine inherit
  SshOptions ssh;
  /// Links to the hosts, where they are not made by ssh; empty = ssh, and this machine directly.
  std::function<OpenedLink(const Placement&)> open_link{};
  std::chrono::milliseconds start_timeout{30'000};
  std::chrono::milliseconds grace{5'000};  ///< between SIGTERM and SIGKILL
  std::string network_interface;           ///< of the meeting place; "" = what reaches the hosts
  BindTo bind_to = BindTo::none;
  OutputOptions output;
  bool verbose = false;
};

/// Starts the job, passes its output on, ends it when a rank fails or a signal comes, and returns
/// the exit status: 0, that of the first rank that failed (128 + n for signal n), 128 + n for a
/// signal to this process, 1 if the job could not be started or a host was lost. What went wrong is
/// said on standard error in one line. Blocks SIGINT, SIGTERM and SIGHUP in this process.
/// Throws for what is wrong before anything was started.
int run_job(const ParallelJob& job);

}  // namespace kolo::launch
