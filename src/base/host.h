// Names of the machine that this process runs on.
#pragma once

#include <string>

namespace kolo {

/// As `hostname` prints it; "localhost" for a machine without a name.
std::string host_name();

/// Equal for two processes exactly when they run on the same machine since the same boot.
/// Containers and restarts share host names; the identity of the boot tells them apart.
std::string host_identity();

}  // namespace kolo
