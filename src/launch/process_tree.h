// The processes below this one.
#pragma once

#include <sys/types.h>

#include <vector>

namespace kolo::launch {

/// Makes this process the parent of every descendant whose own parent ends, so that none escapes.
void adopt_orphans();

/// All living processes below this one, children before their own children.
std::vector<pid_t> descendants();

/// Sends a signal to each of them, once; how many there were.
int signal_descendants(int signal);

/// This process's own children, adopted ones too.
std::vector<pid_t> children();

/// Whether this process has children, living or not yet waited for.
bool has_children();

}  // namespace kolo::launch
