// SQLite in WAL mode: readers never wait for the writer, and a commit is one append to a file.
#pragma once

#include <memory>
#include <string>

#include "store/database.h"

namespace kolo::store {

std::unique_ptr<Database> open_sqlite(const std::string& url, const OpenOptions& options);

}  // namespace kolo::store
