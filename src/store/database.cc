#include "store/database.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/errors.h"
#include "base/registry.h"
#include "store/postgresql.h"
#include "store/sqlite.h"

namespace kolo::store {

Watch::Watch() : cancelled_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  // Without it nobody could end a wait.
  if (!cancelled_.valid()) throw_errno("cannot watch the database");
}

void Watch::cancel() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(cancelled_.get(), &one, sizeof one);
}

bool Watch::cancelled() const noexcept {
  pollfd event{cancelled_.get(), POLLIN, 0};
  return ::poll(&event, 1, 0) > 0;
}

namespace {

using MakeDatabase = std::unique_ptr<Database> (*)(const std::string&, const OpenOptions&);

constexpr Entry<MakeDatabase> kStores[] = {
    {"sqlite", "a file on this machine (the default)", open_sqlite},
    {"postgresql", "a server, for many hosts: postgresql://user@host/database", open_postgresql},
};
constexpr Registry<MakeDatabase> kTable{"store", kStores};

}  // namespace

std::unique_ptr<Database> open_database(const std::string& url, OpenOptions options) {
  if (url.empty())
    throw_error(ErrorCode::invalid_argument,
                "the name of the database is empty; give a file or a URL");
  const auto colon = url.find("://");
  if (colon == std::string::npos) return open_sqlite(url, options);
  std::string scheme = url.substr(0, colon);
  if (scheme == "postgres") scheme = "postgresql";
  return kTable.at(scheme).make(url, options);
}

std::vector<StoreInfo> stores() {
  std::vector<StoreInfo> all;
  for (const auto& entry : kTable.entries()) all.push_back({entry.name, entry.summary});
  return all;
}

}  // namespace kolo::store
