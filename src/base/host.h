// Names of the machine that this process runs on, and of its user.
#pragma once

#include <string>

namespace kolo {

/// As `hostname` prints it; "localhost" for a machine without a name.
std::string host_name();

/// Equal for two processes exactly when they run on the same machine since the same boot.
/// Containers and restarts share host names; the identity of the boot tells them apart.
std::string host_identity();

/// As `whoami` prints it; the number of a user without a name. Any thread may call it.
std::string user_name();

}  // namespace kolo
