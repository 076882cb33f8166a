// Writes many rows to SQLite with a prepared INSERT.
#pragma once

#include <initializer_list>
#include <memory>

#include "store/database.h"

namespace kolo::store {

std::unique_ptr<RowWriter> make_sqlite_rows(Database& database, std::string_view table,
                                            std::initializer_list<std::string_view> columns);

}  // namespace kolo::store
