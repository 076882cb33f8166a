// Each folder is opened from the one above it, and no link is followed. So what is removed is below
// the path that was given, whatever somebody puts in its place meanwhile.
#include "base/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "base/fd.h"

namespace kolo {
namespace {

constexpr int kDeepest = 128;

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

bool remove_entry(int parent, const char* name, int depth);

bool remove_entries(Fd folder, int depth) {
  const std::unique_ptr<DIR, CloseDirectory> directory(::fdopendir(folder.get()));
  if (!directory) return false;
  static_cast<void>(folder.release());
  bool is_empty = true;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    is_empty = remove_entry(::dirfd(directory.get()), entry->d_name, depth) && is_empty;
  }
  return is_empty;
}

bool remove_entry(int parent, const char* name, int depth) {
  if (::unlinkat(parent, name, 0) == 0 || errno == ENOENT) return true;
  if ((errno != EISDIR && errno != EPERM) || depth == 0) return false;
  Fd folder(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return folder.valid() && remove_entries(std::move(folder), depth - 1) &&
         ::unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

}  // namespace

bool remove_without_links(const std::filesystem::path& path) {
  if (!path.is_absolute() || !path.has_filename()) return false;
  Fd folder(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const auto& part : path.parent_path().relative_path()) {
    if (!folder.valid() || part == "..") return false;
    Fd next(::openat(folder.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) return errno == ENOENT;
    folder = std::move(next);
  }
  const std::filesystem::path name = path.filename();
  if (!folder.valid() || name == "." || name == "..") return false;
  return remove_entry(folder.get(), name.c_str(), kDeepest);
}

}  // namespace kolo
