// Writes many rows to one table, in the fastest way that each database offers.
//
//   auto rows = database.insert_rows("history", {"job", "seq", "reason"});
//   rows->add(7).add(1).add("created").end_row();
//   rows->finish();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace kolo::store {

/// Use it inside a transaction and let nothing else happen on the connection before finish(); a
/// writer that is dropped before leaves the transaction to be rolled back.
class RowWriter {
 public:
  virtual ~RowWriter() = default;

  // The values of a row, in the order of the columns.
  virtual RowWriter& add(std::int64_t value) = 0;
  virtual RowWriter& add(double value) = 0;
  /// Kept as Statement::bind() keeps text.
  RowWriter& add(std::string_view value) {
    return is_plain_utf8(value) ? add_text(value) : add_text(plain_utf8(value));
  }
  virtual RowWriter& add_null() = 0;
  RowWriter& add(int value) { return add(std::int64_t{value}); }
  RowWriter& add(const std::string& value) { return add(std::string_view(value)); }
  RowWriter& add(const char* value) { return add(std::string_view(value)); }

  virtual void end_row() = 0;
  /// All rows are in the table. Throws as Database does.
  virtual void finish() = 0;

 protected:
  virtual RowWriter& add_text(std::string_view value) = 0;
};

}  // namespace kolo::store
