// Files go first, to the disk, and the database follows, under a claim: when the process is killed
// or the power fails in between, the study is still in the database, and the same call finishes the
// work.
#include "tune/study/study_upkeep.h"

#include "base/clock.h"
#include "base/errors.h"
#include "base/files.h"
#include "kolo/tune.h"
#include "tune/study/study.h"
#include "tune/study/study_claim.h"
#include "tune/trial/checkpoints.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

/// A study that is looked after, and where it is.
struct Upkeep {
  Upkeep(const std::string& name, const std::string& storage)
      : database(store::open_database(url_of(storage), {.create = false})),
        store(*database),
        study(store.at(name)),
        claim(store, study.id),
        files(files_of_study(store, study)) {}

  static std::string url_of(const std::string& storage) {
    Options options;
    options.storage = storage;
    return storage_url(options);
  }
  /// Where a study of another name would be.
  [[nodiscard]] StudyFiles renamed(const std::string& name) {
    check_study_name(name);
    if (store.find(name))
      throw_error(ErrorCode::already_exists, "there is a study '{}' already; choose another name",
                  name);
    return {files.directory.parent_path() / name, files.entries};
  }

  std::unique_ptr<store::Database> database;
  store::StudyStore store;
  store::StudyRecord study;
  StudyClaim claim;
  StudyFiles files;
};

template <class Work>
void with_files(const std::string& what, const fs::path& path, Work&& work) {
  try {
    work();
  } catch (const fs::filesystem_error& error) {
    throw_error(ErrorCode::io, "cannot {} {}: {}", what, path.string(), error.code().message());
  }
}

bool is_taken(const fs::path& path) {
  std::error_code none;
  return fs::symlink_status(path, none).type() != fs::file_type::not_found;
}

void remove_if_empty(const fs::path& directory) {
  std::error_code not_empty;
  fs::remove(directory, not_empty);
}

}  // namespace

std::uintmax_t StudyFiles::bytes() const {
  std::uintmax_t sum = 0;
  const auto add = [&sum](const fs::directory_entry& entry) {
    std::error_code gone;
    if (!entry.is_symlink(gone) && entry.is_regular_file(gone)) sum += entry.file_size(gone);
  };
  for (const auto& name : entries) {
    std::error_code gone;
    const fs::directory_entry top(directory / name, gone);
    add(top);
    if (top.is_symlink(gone) || !top.is_directory(gone)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(
             top.path(), fs::directory_options::skip_permission_denied, gone))
      add(entry);
  }
  return sum;
}

StudyFiles files_of_study(store::StudyStore& store, const store::StudyRecord& study) {
  StudyFiles files{study.directory, {}};
  const auto add = [&files](const std::string& name) {
    if (is_taken(files.directory / name)) files.entries.push_back(name);
  };
  for (const auto& trial : store.trials(study.id)) {
    const fs::path directory = trial.directory;
    if (directory.parent_path() == files.directory) add(directory.filename().string());
  }
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(files.directory, none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("pbt_") && name.ends_with(".txt")) files.entries.push_back(name);
  }
  return files;
}

void delete_study(const std::string& name, const std::string& storage) {
  Upkeep upkeep(name, storage);
  for (const auto& entry : upkeep.files.entries) {
    const fs::path path = upkeep.files.directory / entry;
    with_files("remove", path, [&] { fs::remove_all(path); });
  }
  remove_if_empty(upkeep.files.directory);
  upkeep.store.remove(upkeep.study.id);
  upkeep.database->flush();
}

void rename_study(const std::string& name, const std::string& new_name,
                  const std::string& storage) {
  Upkeep upkeep(name, storage);
  const StudyFiles to = upkeep.renamed(new_name);
  make_lasting_directories(to.directory);
  std::size_t moved = 0;
  try {
    for (const auto& entry : to.entries) {
      const fs::path path = upkeep.files.directory / entry;
      with_files("move", path, [&] { fs::rename(path, to.directory / entry); });
      ++moved;
    }
  } catch (const Error&) {  // the study stays as it is
    std::error_code remains;
    while (moved > 0 && !remains) {
      const auto& entry = to.entries[--moved];
      fs::rename(to.directory / entry, upkeep.files.directory / entry, remains);
    }
    remove_if_empty(to.directory);
    throw;
  }
  sync_to_disk(to.directory);
  sync_to_disk(upkeep.files.directory);
  remove_if_empty(upkeep.files.directory);
  upkeep.store.rename(upkeep.study.id, new_name, to.directory.string());
  upkeep.database->flush();
}

namespace {

/// What a copy has made, which goes with it if the copy fails.
class CopiedFiles {
 public:
  CopiedFiles(const StudyFiles& from, const StudyFiles& to) : from_(from), to_(to) {
    for (const auto& entry : to_.entries)
      if (!is_taken(to_.directory / entry)) made_.push_back(to_.directory / entry);
  }

  void make() {
    make_lasting_directories(to_.directory);
    for (const auto& entry : to_.entries) {
      const fs::path path = from_.directory / entry;
      with_files("copy", path, [&] { copy_files(path, to_.directory / entry, CopiedLinks::stay); });
    }
    with_files("write", to_.directory, [&] { sync_tree_to_disk(to_.directory); });
  }

  /// Throws `failure`, with what could not be removed.
  [[noreturn]] void remove(const Error& failure) const {
    std::error_code error;
    for (const auto& path : made_) {
      fs::remove_all(path, error);
      if (error)
        throw_error(failure.code(), "{}; what was copied so far stays in {}: {}", failure.message(),
                    to_.directory.string(), error.message());
    }
    remove_if_empty(to_.directory);
    if (made_.size() < to_.entries.size() && is_taken(to_.directory))
      throw_error(failure.code(), "{}; {} had files of these names before, which may have changed",
                  failure.message(), to_.directory.string());
    throw_error(failure.code(), "{}; nothing was copied", failure.message());
  }

 private:
  const StudyFiles &from_, &to_;
  std::vector<fs::path> made_;
};

}  // namespace

void copy_study(const std::string& name, const std::string& new_name, const std::string& storage) {
  Upkeep upkeep(name, storage);
  const StudyFiles to = upkeep.renamed(new_name);
  CopiedFiles files(upkeep.files, to);
  try {
    files.make();
    upkeep.store.copy(upkeep.study.id, new_name, to.directory.string());
  } catch (const Error& failure) {
    // The answer to a commit may be lost: then only the database knows whether there is a copy.
    bool is_there = false;
    try {
      is_there = upkeep.store.find(new_name).has_value();
    } catch (const Error&) {
      throw_error(failure.code(),
                  "{}; whether '{}' is there now is unknown, and its files are in {}",
                  failure.message(), new_name, to.directory.string());
    }
    if (is_there) throw;
    files.remove(failure);
  }
  upkeep.database->flush();
}

}  // namespace kolo::tune
