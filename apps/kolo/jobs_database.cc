#include "jobs_database.h"

#include <charconv>

#include "base/env.h"
#include "base/errors.h"

namespace kolo::app {
namespace fs = std::filesystem;

fs::path jobs_folder() {
  for (const char* name : {"KOLO_DB", "BALSAM_DB_PATH"})
    if (auto folder = environment(name)) return *folder;
  return fs::exists("kolo-jobs.json") ? "." : "";
}

jobs::JobDatabase open_jobs() {
  const fs::path folder = jobs_folder();
  if (folder.empty())
    throw_error(
        ErrorCode::failed_precondition,
        "no database of jobs is active: make one with `kolo init DIR`, then run eval \"$(kolo "
        "activate DIR)\"");
  return jobs::JobDatabase::open(folder);
}

jobs::JobId parse_job_id(const std::string& text) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 1)
    throw_error(ErrorCode::invalid_argument,
                "'{}' is not the number of a job; `kolo ls` shows them", text);
  return jobs::JobId{id};
}

std::string own_program() { return fs::read_symlink("/proc/self/exe").string(); }

}  // namespace kolo::app
