// Rows are collected in the text format of COPY (tabs between columns, \N for null, backslashes
// before control characters) and sent in blocks of 64 KiB. A writer that is destroyed before
// finish() makes the server drop its rows.
#include "store/postgresql_copy.h"

#include <fmt/ranges.h>

#include <cmath>

#include "base/errors.h"

namespace kolo::store {
namespace {

constexpr std::size_t kBlock = 64U << 10;

}  // namespace

PgCopy::PgCopy(PgConnection& connection, std::string_view table,
               std::span<const std::string_view> columns)
    : connection_(connection) {
  const std::string sql =
      fmt::format("COPY {} ({}) FROM STDIN", table, fmt::join(columns.begin(), columns.end(), ","));
  PGresult* answer = libpq().exec(connection_.handle(), sql.c_str());
  if (libpq().result_status(answer) == PGRES_COPY_IN) {
    libpq().clear(answer);
    return;
  }
  open_ = false;
  connection_.checked(answer, fmt::format("'{}'", sql));
  throw_error(ErrorCode::internal, "'{}' does not take rows", sql);
}

PgCopy::~PgCopy() {
  if (!open_) return;
  libpq().put_copy_end(connection_.handle(), "given up");
  while (PGresult* answer = libpq().get_result(connection_.handle())) libpq().clear(answer);
}

void PgCopy::separate() {
  if (!first_) text_ += '\t';
  first_ = false;
}

RowWriter& PgCopy::add(std::int64_t value) {
  separate();
  text_ += std::to_string(value);
  return *this;
}

RowWriter& PgCopy::add(double value) {
  if (!std::isfinite(value))
    throw_error(ErrorCode::invalid_argument, "a number in a new row is not finite");
  separate();
  fmt::format_to(std::back_inserter(text_), "{}", value);
  return *this;
}

RowWriter& PgCopy::add_text(std::string_view value) {
  separate();
  for (const char c : value) {
    if (c == '\\')
      text_ += "\\\\";
    else if (c == '\n')
      text_ += "\\n";
    else if (c == '\r')
      text_ += "\\r";
    else if (c == '\t')
      text_ += "\\t";
    else
      text_ += c;
  }
  return *this;
}

RowWriter& PgCopy::add_null() {
  separate();
  text_ += "\\N";
  return *this;
}

void PgCopy::end_row() {
  text_ += '\n';
  first_ = true;
  if (text_.size() >= kBlock) send();
}

void PgCopy::send() {
  if (libpq().put_copy_data(connection_.handle(), text_.data(), static_cast<int>(text_.size())) !=
      1)
    throw_error(ErrorCode::unavailable, "{}: the connection was lost while rows were sent",
                connection_.name());
  text_.clear();
}

void PgCopy::finish() {
  if (!text_.empty()) send();
  open_ = false;
  const bool sent = libpq().put_copy_end(connection_.handle(), nullptr) == 1;
  PgResult answer(libpq().get_result(connection_.handle()));
  // COPY ends with one more, empty result.
  while (PGresult* rest = libpq().get_result(connection_.handle())) libpq().clear(rest);
  if (!sent)
    throw_error(ErrorCode::unavailable, "{}: the connection was lost while rows were sent",
                connection_.name());
  connection_.checked(answer.release(), "adding rows");
}

}  // namespace kolo::store
