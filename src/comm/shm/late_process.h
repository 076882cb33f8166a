// Why a process of this host that lives does not arrive.
#pragma once

#include <sys/types.h>

#include <string>

namespace kolo::comm {

/// What can be known about it, and what to do; the end of an error message.
std::string why_late(pid_t process);

}  // namespace kolo::comm
