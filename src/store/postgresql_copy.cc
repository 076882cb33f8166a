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
    : connection_(connection),
      sql_(fmt::format("COPY {} ({}) FROM STDIN", table,
                       fmt::join(columns.begin(), columns.end(), ","))) {
  PGresult* answer = connection_.answer(libpq().send_query(connection_.handle(), sql_.c_str()));
  if (libpq().result_status(answer) == PGRES_COPY_IN) {
    libpq().clear(answer);
    return;
  }
  open_ = false;
  connection_.checked(answer, sql_);
  throw_error(ErrorCode::internal, "'{}' does not take rows", sql_);
}

PgCopy::~PgCopy() {
  if (!open_) return;
  try {
    libpq().clear(connection_.answer(libpq().put_copy_end(connection_.handle(), "given up")));
  } catch (const Error&) {
    // The server drops the rows of a connection that is gone.
  }
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
  const auto size = static_cast<int>(text_.size());
  int queued = 0;
  while ((queued = libpq().put_copy_data(connection_.handle(), text_.data(), size)) == 0)
    connection_.flush();
  if (queued != 1) lose();
  connection_.flush();
  text_.clear();
}

void PgCopy::finish() {
  if (!text_.empty()) send();
  open_ = false;
  const int sent = libpq().put_copy_end(connection_.handle(), nullptr);
  if (sent != 1) lose();
  connection_.checked(connection_.answer(sent), sql_);
}

void PgCopy::lose() const {
  throw_error(ErrorCode::unavailable, "{}: the connection was lost while rows were sent",
              connection_.name());
}

}  // namespace kolo::store
