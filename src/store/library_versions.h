// Versions of the libraries behind databases, for people who ask what this machine has.
#pragma once

#include <string>

namespace kolo::store {

/// "3.40.1".
std::string sqlite_version();
/// "15.14". Loads libpq; throws not_found where it is missing.
std::string libpq_version();

}  // namespace kolo::store
