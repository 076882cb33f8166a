#include "store/migrations.h"

#include "base/errors.h"

namespace kolo::store {
namespace {

int read_version(Database& database, std::string_view room) {
  auto& query = database.prepare("SELECT version FROM kolo_schema WHERE room = $1");
  query.bind(1, room);
  const int version = query.next() ? static_cast<int>(query.integer(0)) : 0;
  query.reset();
  return version;
}

bool has_schema_table(Database& database) {
  auto& query = database.prepare(database.kind() == "sqlite"
                                     ? "SELECT 1 FROM sqlite_master WHERE name = 'kolo_schema'"
                                     : "SELECT 1 WHERE to_regclass('kolo_schema') IS NOT NULL");
  const bool there = query.next();
  query.reset();
  return there;
}

/// "/*clustered*/" after a table asks for rows in the order of their key.
std::string in_dialect(const Database& database, std::string_view sql) {
  constexpr std::string_view kMark = "/*clustered*/";
  std::string text(sql);
  if (database.kind() != "sqlite") return text;
  for (auto place = text.find(kMark); place != std::string::npos; place = text.find(kMark, place))
    text.replace(place, kMark.size(), "WITHOUT ROWID");
  return text;
}

}  // namespace

int schema_version(Database& database, std::string_view room) {
  return has_schema_table(database) ? read_version(database, room) : 0;
}

void migrate(Database& database, std::string_view room, std::span<const Migration> steps) {
  const int wanted = steps.back().version;
  // The usual case changes nothing, and must not wait for a writer.
  if (schema_version(database, room) == wanted) return;

  Transaction change(database);
  database.execute(
      "CREATE TABLE IF NOT EXISTS kolo_schema (room TEXT PRIMARY KEY, version BIGINT NOT NULL)");
  const int found = read_version(database, room);
  if (found > wanted)
    throw_error(ErrorCode::failed_precondition,
                "{}: its tables of {} have version {}, but this kolo knows versions up to {}; use "
                "a newer kolo",
                database.name(), room, found, wanted);
  for (const auto& step : steps)
    if (step.version > found) database.execute(in_dialect(database, step.sql));
  database
      .prepare(
          "INSERT INTO kolo_schema (room, version) VALUES ($1, $2) "
          "ON CONFLICT (room) DO UPDATE SET version = excluded.version")
      .bind(1, room)
      .bind(2, wanted)
      .run();
  change.commit();
}

}  // namespace kolo::store
