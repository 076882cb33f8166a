// Migrations: each module that keeps tables in the database has a list of steps, numbered from 1,
// that lead from one version of its tables to the next.
#pragma once

#include <span>
#include <string_view>

#include "store/database.h"

namespace kolo::store {

/// SQL that leads from the version before to this one. Steps are never changed once released.
/// "/*clustered*/" after a table: its rows lie in the order of their primary key, where that can
/// be had.
struct Migration {
  int version;
  std::string_view sql;
};

/// Brings the tables of the module `room` to the version of the last step, in one transaction;
/// several processes may try at once. Throws failed_precondition if the database is of a newer
/// kolo.
void migrate(Database& database, std::string_view room, std::span<const Migration> steps);

/// 0 = nothing there.
int schema_version(Database& database, std::string_view room);

}  // namespace kolo::store
