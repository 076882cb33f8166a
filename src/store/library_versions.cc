#include "store/library_versions.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include "store/libpq.h"

namespace kolo::store {

std::string sqlite_version() { return ::sqlite3_libversion(); }

std::string libpq_version() {
  const int number = libpq().lib_version();  // 150014 = 15.14
  return fmt::format("{}.{}", number / 10000, number % 10000);
}

}  // namespace kolo::store
