// Writes many rows to PostgreSQL with COPY.
#pragma once

#include <span>

#include "store/postgresql_connection.h"
#include "store/row_writer.h"

namespace kolo::store {

class PgCopy final : public RowWriter {
 public:
  PgCopy(PgConnection& connection, std::string_view table,
         std::span<const std::string_view> columns);
  ~PgCopy() override;
  PgCopy(const PgCopy&) = delete;
  PgCopy& operator=(const PgCopy&) = delete;

  using RowWriter::add;
  RowWriter& add(std::int64_t value) override;
  RowWriter& add(double value) override;
  RowWriter& add_null() override;
  void end_row() override;
  void finish() override;

 private:
  RowWriter& add_text(std::string_view value) override;
  void separate();
  void send();
  [[noreturn]] void lose() const;

  PgConnection& connection_;
  std::string sql_;
  std::string text_;
  bool first_ = true;
  bool open_ = true;
};

}  // namespace kolo::store
