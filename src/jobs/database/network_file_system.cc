#include "jobs/database/network_file_system.h"

#include <sys/vfs.h>

#include "base/log.h"

namespace kolo::jobs {

std::string_view network_file_system_of(const std::filesystem::path& path) {
  struct Kind {
    unsigned long magic;
    std::string_view name;
  };
  // From the kernel's magic.h and the file systems' own sources.
  constexpr Kind kKinds[] = {
      {0x6969, "NFS"},        {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},
      {0xFF534D42, "CIFS"},   {0xFE534D42, "SMB2"},   {0x00C36400, "Ceph"},
      {0x19830326, "BeeGFS"}, {0x65735546, "FUSE"},   {0xAAD7AAEA, "Panasas"}};
  struct statfs status {};
  if (::statfs(path.c_str(), &status) != 0) return {};
  for (const auto& kind : kKinds)
    if ((static_cast<unsigned long>(status.f_type) & 0xFFFFFFFFUL) == kind.magic) return kind.name;
  return {};
}

void warn_of_network_file_system(const std::filesystem::path& path) {
  const auto kind = network_file_system_of(path);
  if (!kind.empty())
    log::warning(
        "{} is on {}: SQLite is safe there only while one host uses it; for several, give a "
        "PostgreSQL server with --db",
        path.string(), kind);
}

}  // namespace kolo::jobs
