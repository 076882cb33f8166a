// The processes below this one, and whose they are.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::exec {

/// A killed process ends in no time, unless the kernel waits for a disk or a server on its behalf.
inline constexpr std::chrono::seconds kLongestDeath{10};

/// Makes this process the parent of every descendant whose own parent ends, so that none escapes.
void adopt_orphans();

/// All living processes below this one, children before their own children.
std::vector<pid_t> descendants();

/// Sends a signal to each of them, once; how many there were.
int signal_descendants(int signal);

/// Kills everything below this process, again and again until nothing is left: a process may fork
/// between being seen and being killed. Returns those that do not end within the time of the
/// longest death: a program of another user, such as one with set-uid, cannot be killed.
std::vector<pid_t> kill_descendants();

/// The children of the calling thread, adopted ones too if it is the only thread of its process.
std::vector<pid_t> children();

/// Whether this process has children, living or not yet waited for.
bool has_children();

// A mark is what all processes of a task, and no others, have in their environment: a word of the
// variable KOLO_TASK. Tasks inside tasks have the words of all of them.

inline constexpr std::string_view kMarkVariable = "KOLO_TASK";

/// The entry that gives a task this mark, inside the task that `environment` belongs to.
std::string mark_entry(const std::vector<std::string>& environment, std::string_view mark);

enum class Membership {
  no,
  yes,
  unknown  ///< it is ending: nobody can tell any more
};
Membership membership_of(pid_t pid, std::string_view mark);

}  // namespace kolo::exec
