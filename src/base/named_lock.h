// A lock by the name of a file that its holder removes at the end.
#pragma once

#include <filesystem>

#include "base/fd.h"

namespace kolo {

/// Makes the file if there is none. Invalid if somebody else has it. Throws io.
Fd lock_named_file(const std::filesystem::path& path);

}  // namespace kolo
