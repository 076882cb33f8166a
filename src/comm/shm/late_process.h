// Says why a living process of this host has not arrived at a meeting.
#pragma once

#include <sys/types.h>

#include <string>

namespace kolo::comm {

/// What can be known about it, and what to do; the end of an error message.
std::string why_late(pid_t process);

}  // namespace kolo::comm
