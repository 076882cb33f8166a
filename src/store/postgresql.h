// PostgreSQL by URL, for studies and jobs that several hosts work on.
#pragma once

#include <memory>
#include <string>

#include "store/database.h"

namespace kolo::store {

/// Connects at once. A connection that is lost later is made anew by the next begin(), or the next
/// statement outside a transaction.
std::unique_ptr<Database> open_postgresql(const std::string& url, const OpenOptions& options);

}  // namespace kolo::store
