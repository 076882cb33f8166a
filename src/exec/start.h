// How a process becomes a custodian.
//
// A custodian is always a program that was exec'ed, never a fork of a process that may have
// threads. On this machine it is the owner's own program, started again: a constructor that runs
// before main() sees the variable KOLO_CUSTODIAN and does not return. So it is always there, and
// always of the same version as its owner. On other hosts it is `kolo custodian`.
//
// The process forks once, before it has threads: the parent is the guard. It does nothing but wait
// for the custodian and then kill what that left, should it have been killed itself. If the guard
// is killed, the custodian ends its tasks and follows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/fd.h"
#include "exec/channel.h"
#include "exec/custodian.h"

namespace kolo::exec {

/// Which program becomes the custodian of this machine, instead of this one. For programs that the
/// constructor is not linked into, such as an interpreter with kolo as a module.
void set_custodian_program(const std::filesystem::path& program);

struct LocalCustodian {
  pid_t guard = -1;
  Fd socket;
};

/// Starts a custodian of this machine as a child of this process. `family_lock` may be invalid.
/// Throws not_found or io.
LocalCustodian start_local_custodian(const Fd& family_lock);

/// `kolo custodian`: serves the owner at the other end of standard input and output.
int be_custodian_of_standard_streams();

/// A custodian that listens, in a session of its own that outlives this process: it has no terminal
/// and no standard streams. Returns its process id. To be called before there are threads.
pid_t start_standing_custodian(Fd listener, Standing standing, Fd family_lock);

/// As lock_family, by a name that is known on this host alone: where the directory is on a file
/// system that several hosts share, each of them has a family of its own.
HostFamily lock_family_of_host(std::string_view name);

/// Where other hosts reach this one: the address that ssh arrived at, else the one that its own
/// name means, else that of its first network interface.
std::string address_for_others();

/// Waits for processes of an earlier family in this directory, and locks it for a new one: the
/// custodian and everything it starts inherit the lock, so it is free when all of them are gone.
/// Invalid, after a warning in the log, where that takes longer than 10 s; and where the file
/// system has no locks.
Fd lock_family(const std::filesystem::path& directory);

}  // namespace kolo::exec
