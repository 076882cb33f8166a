// Keep-alives and a user timeout of 15 s make the end of a server noticeable on an idle connection.
// Names that are shown to users never contain the password of the URL. States of PostgreSQL become
// codes of kolo by what the caller can do: what may pass (connection, resources, shutdown, locks)
// is `unavailable`.
#include "store/postgresql_connection.h"

#include "base/errors.h"
#include "store/database.h"

namespace kolo::store {
namespace {

ErrorCode code_of_state(std::string_view state) {
  if (state == "23505") return ErrorCode::already_exists;  // unique_violation
  // No state: the connection broke. 08: connection, 53: no resources (disk full), 57: the server
  // goes down, 55P03 and 40: locks.
  for (std::string_view passing : {"08", "53", "57", "55P03", "40"})
    if (state.empty() || state.starts_with(passing)) return ErrorCode::unavailable;
  if (state.starts_with("22") || state.starts_with("42") || state.starts_with("23"))
    return ErrorCode::invalid_argument;
  if (state.starts_with("XX")) return ErrorCode::corruption;
  return ErrorCode::io;
}

/// libpq's messages end with a newline and may have several lines.
std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text)
    if (c == '\n' || c == '\t') c = ' ';
  return text;
}

}  // namespace

std::string without_password(const std::string& url) {
  std::string shown = url;
  // postgresql://user:PASSWORD@host/…; a colon further on is a port or part of a value.
  const auto start = shown.find("://");
  if (start == std::string::npos) return shown;
  const auto at = shown.substr(0, shown.find('?')).rfind('@');
  const auto colon = shown.find(':', start + 3);
  if (at != std::string::npos && colon < at) shown.erase(colon, at - colon);
  // …?user=me&password=PASSWORD
  for (std::size_t place = shown.find('?'); place < shown.size();) {
    const auto end = std::min(shown.find('&', place + 1), shown.size());
    const auto equals = shown.find('=', place);
    if (equals < end && std::string_view(shown).substr(0, equals).ends_with("password"))
      shown.replace(equals + 1, end - equals - 1, "…");
    place = shown.find('&', place + 1);
  }
  return shown;
}

PgConnection::PgConnection(std::string url, std::chrono::milliseconds patience)
    : url_(std::move(url)), name_(without_password(url_)), patience_(patience) {
  try {
    connect();
  } catch (...) {
    libpq().finish(handle_);
    throw;
  }
}

void PgConnection::connect() {
  if (handle_ != nullptr) libpq().finish(handle_);
  const std::string seconds = std::to_string(std::max<long long>(2, patience_.count() / 1000));
  // The URL is expanded as the name of the database; a server that vanishes is noticed.
  const char* keys[] = {"dbname",           "connect_timeout", "application_name",
                        "keepalives",       "keepalives_idle", "keepalives_interval",
                        "tcp_user_timeout", "client_encoding", nullptr};
  const char* values[] = {url_.c_str(), seconds.c_str(), "kolo", "1",    "5",
                          "2",          "15000",         "UTF8", nullptr};
  handle_ = libpq().connectdb_params(keys, values, 1);
  if (!alive())
    throw_error(ErrorCode::unavailable, "{}: cannot connect: {}", name_,
                one_line(libpq().error_message(handle_)));
  const std::string encoding = libpq().parameter_status(handle_, "server_encoding");
  if (encoding != "UTF8")
    throw_error(ErrorCode::failed_precondition,
                "{}: the database keeps text as {} and cannot hold all of Unicode; create it with "
                "ENCODING 'UTF8'",
                name_, encoding);
  ++generation_;
  libpq().set_notice_processor(
      handle_, [](void*, const char*) {}, nullptr);
  execute(
      fmt::format("SET lock_timeout = {}; SET client_min_messages = warning", patience_.count()));
}

void PgConnection::ensure() {
  if (!alive()) connect();
}

PgResult PgConnection::execute(const std::string& sql) {
  return checked(libpq().exec(handle_, sql.c_str()), "executing");
}

PgResult PgConnection::checked(PGresult* raw, std::string_view doing) {
  PgResult result(raw);
  const auto status = libpq().result_status(raw);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY)
    return result;
  const char* state = raw != nullptr ? libpq().result_error_field(raw, PG_DIAG_SQLSTATE) : nullptr;
  const std::string why =
      one_line(raw != nullptr ? libpq().result_error_message(raw) : libpq().error_message(handle_));
  throw_error(code_of_state(state != nullptr ? state : ""), "{}: {}: {}", name_, doing,
              why.empty() ? "the connection was lost" : why);
}

}  // namespace kolo::store
