#include "store/sqlite_rows.h"

namespace kolo::store {
namespace {

class SqliteRows final : public RowWriter {
 public:
  explicit SqliteRows(Statement& insert) : insert_(insert) {}

  using RowWriter::add;
  RowWriter& add(std::int64_t value) override {
    insert_.bind(++column_, value);
    return *this;
  }
  RowWriter& add(double value) override {
    insert_.bind(++column_, value);
    return *this;
  }
  RowWriter& add_null() override {
    insert_.bind_null(++column_);
    return *this;
  }
  void end_row() override {
    insert_.run();
    column_ = 0;
  }
  void finish() override {}

 private:
  RowWriter& add_text(std::string_view value) override {
    insert_.bind(++column_, value);
    return *this;
  }

  Statement& insert_;
  int column_ = 0;
};

}  // namespace

std::unique_ptr<RowWriter> make_sqlite_rows(Database& database, std::string_view table,
                                            std::initializer_list<std::string_view> columns) {
  std::string names, values;
  int number = 0;
  for (const auto column : columns) {
    names.append(number > 0 ? "," : "").append(column);
    values.append(number > 0 ? ",$" : "$").append(std::to_string(number + 1));
    ++number;
  }
  std::string sql("INSERT INTO ");
  sql.append(table).append(" (").append(names).append(") VALUES (").append(values).append(")");
  return std::make_unique<SqliteRows>(database.prepare(sql));
}

}  // namespace kolo::store
