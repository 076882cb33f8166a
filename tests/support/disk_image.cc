#include "support/disk_image.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>

namespace kolo::test {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kSector = 512;

struct Write {
  std::size_t at = 0;
  std::string bytes;
};
struct Resize {
  std::size_t size = 0;
};
using Change = std::variant<Write, Resize>;

void make(const Change& change, std::string& content) {
  if (const auto* write = std::get_if<Write>(&change)) {
    content.resize(std::max(content.size(), write->at + write->bytes.size()));
    content.replace(write->at, write->bytes.size(), write->bytes);
  } else {
    content.resize(std::get<Resize>(change).size);
  }
}

/// None, all, or the first few.
std::size_t some_of(std::size_t all, Random& random) {
  switch (random.below(3)) {
    case 0: return 0;
    case 1: return all;
    default: return static_cast<std::size_t>(random.below(all + 1));
  }
}

/// The first sectors of a write.
Write torn(const Write& whole, Random& random) {
  const auto sectors = static_cast<std::size_t>(random.below(whole.bytes.size() / kSector + 1));
  return {whole.at, whole.bytes.substr(0, sectors * kSector)};
}

}  // namespace

/// One change of a folder's names: a new name, one that is gone, or both at once.
struct DiskImage::Naming {
  std::string removed;
  std::string added;
  std::shared_ptr<Node> node;
};

/// A file or a folder: what is on disk of it, and what is not yet.
struct DiskImage::Node {
  bool is_folder = false;
  mode_t mode = 0644;
  // Of a file.
  std::string content;
  std::vector<Change> changes;
  // Of a folder.
  using Names = std::map<std::string, std::shared_ptr<Node>>;
  Names names, names_now;
  std::vector<Naming> namings;

  static void make(const Naming& naming, Names& names) {
    if (!naming.removed.empty()) names.erase(naming.removed);
    if (!naming.added.empty()) names[naming.added] = naming.node;
  }
  void name(Naming naming) {
    make(naming, names_now);
    namings.push_back(std::move(naming));
  }
  void flush() {
    for (const auto& change : changes) test::make(change, content);
    changes.clear();
    for (const auto& naming : namings) make(naming, names);
    namings.clear();
  }
};

DiskImage::DiskImage(const fs::path& folder) : root_(fs::canonical(folder)), top_(loaded(root_)) {}

std::shared_ptr<DiskImage::Node> DiskImage::loaded(const fs::path& path) {
  auto node = std::make_shared<Node>();
  node->is_folder = fs::is_directory(path);
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) node->mode = status.st_mode & 07777;
  if (node->is_folder) {
    for (const auto& entry : fs::directory_iterator(path))
      node->names[entry.path().filename()] = loaded(entry.path());
    node->names_now = node->names;
  } else {
    std::ifstream file(path, std::ios::binary);
    node->content.assign(std::istreambuf_iterator<char>(file), {});
  }
  return node;
}

/// A path below the root as its names; nothing for other paths.
std::optional<std::vector<std::string>> DiskImage::names_of(const fs::path& path) const {
  const fs::path whole = path.lexically_normal();
  const auto [end, rest] = std::mismatch(root_.begin(), root_.end(), whole.begin(), whole.end());
  if (end != root_.end()) return std::nullopt;
  std::vector<std::string> names;
  for (auto name = rest; name != whole.end(); ++name)
    if (!name->empty()) names.push_back(*name);
  return names;
}

std::shared_ptr<DiskImage::Node> DiskImage::find(const fs::path& path) const {
  const auto names = names_of(path);
  if (!names) return nullptr;
  std::shared_ptr<Node> node = top_;
  for (const auto& name : *names) {
    const auto next = node->names_now.find(name);
    if (next == node->names_now.end()) return nullptr;
    node = next->second;
  }
  return node;
}

std::shared_ptr<DiskImage::Node> DiskImage::file_of(int fd) const {
  const auto found = open_files_.find(fd);
  return found == open_files_.end() ? nullptr : found->second;
}

/// Something changes; false if the power is gone, and it does not.
bool DiskImage::happens() {
  if (!has_failed_ && fails_at_ && changes_ >= *fails_at_) has_failed_ = true;
  if (!has_failed_) ++changes_;
  return !has_failed_;
}

void DiskImage::opened(int fd, const fs::path& path, bool made, bool truncated, mode_t mode) {
  auto node = find(path);
  if (node == nullptr && made) {
    const auto folder = find(path.parent_path());
    if (folder == nullptr) return;
    node = std::make_shared<Node>();
    node->mode = mode;
    if (happens()) folder->name({{}, path.filename(), node});
  }
  if (node == nullptr) return;
  if (truncated && happens()) node->changes.emplace_back(Resize{0});
  open_files_[fd] = std::move(node);
}

void DiskImage::written(int fd, std::size_t at, std::string bytes) {
  const auto file = file_of(fd);
  if (file != nullptr && happens()) file->changes.emplace_back(Write{at, std::move(bytes)});
}

void DiskImage::resized(int fd, std::size_t size) {
  const auto file = file_of(fd);
  if (file != nullptr && happens()) file->changes.emplace_back(Resize{size});
}

void DiskImage::flushed(int fd) {
  const auto file = file_of(fd);
  if (file != nullptr && happens() && !lies) file->flush();
}

void DiskImage::made_folder(const fs::path& path, mode_t mode) {
  const auto above = find(path.parent_path());
  if (above == nullptr || !happens()) return;
  auto node = std::make_shared<Node>();
  node->is_folder = true;
  node->mode = mode;
  above->name({{}, path.filename(), std::move(node)});
}

void DiskImage::removed(const fs::path& path) {
  const auto above = find(path.parent_path());
  if (above != nullptr && happens()) above->name({path.filename(), {}, nullptr});
}

void DiskImage::renamed(const fs::path& from, const fs::path& to) {
  const auto node = find(from), above = find(from.parent_path()), to_be = find(to.parent_path());
  if (node == nullptr || to_be == nullptr || !happens()) return;
  if (above == to_be) {
    above->name({from.filename(), to.filename(), node});
  } else {
    to_be->name({{}, to.filename(), node});
    above->name({from.filename(), {}, nullptr});
  }
}

std::string DiskImage::content_after_failure(const Node& file, Random& random) {
  std::string content = file.content;
  const std::size_t kept = some_of(file.changes.size(), random);
  const bool in_any_order = random.below(2) == 0;
  for (std::size_t i = 0; i < file.changes.size(); ++i) {
    const auto& change = file.changes[i];
    const auto* write = std::get_if<Write>(&change);
    if (i < kept || (in_any_order && random.below(2) == 0))
      make(change, content);
    else if (write != nullptr && (i == kept || in_any_order) && random.below(2) == 0)
      make(torn(*write, random), content);
  }
  return content;
}

void DiskImage::write(const Node& node, const fs::path& path, Random& random) {
  if (node.is_folder) {
    fs::create_directory(path);
    Node::Names names = node.names;
    const std::size_t kept = some_of(node.namings.size(), random);
    for (std::size_t i = 0; i < kept; ++i) Node::make(node.namings[i], names);
    for (const auto& [name, inner] : names) write(*inner, path / name, random);
  } else {
    const std::string content = content_after_failure(node, random);
    std::ofstream(path, std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
  }
  ::chmod(path.c_str(), node.mode);
}

void DiskImage::restart(Random& random) {
  for (const auto& entry : fs::directory_iterator(root_)) fs::remove_all(entry.path());
  write(*top_, root_, random);
  top_ = loaded(root_);
  open_files_.clear();
  has_failed_ = false;
  fails_at_.reset();
}

}  // namespace kolo::test
