#include "jobs/database/launch_claim.h"

#include <unistd.h>

#include <cerrno>
#include <sstream>

#include "base/errors.h"
#include "base/files.h"
#include "base/words.h"

namespace kolo::jobs {
namespace fs = std::filesystem;

fs::path claim_of_launch(const fs::path& folder, const std::string& name) {
  return folder / "qsubmit" / (name + ".claim");
}

std::string code_to_claim(const fs::path& claim) {
  // In the order of Slurm, PBS, LSF, Cobalt and Grid Engine. Templates may begin with `set -e`.
  return fmt::format(
      "claim={}\n"
      "(set -C; echo \"begun ${{SLURM_JOB_ID:-${{PBS_JOBID:-${{LSB_JOBID:-"
      "${{COBALT_JOBID:-${{JOB_ID-}}}}}}}}}}\" >\"$claim\") 2>/dev/null || true\n"
      "if grep -qs '^withdrawn' \"$claim\"; then\n"
      "  echo 'kolo: this launch was given up, because its submission failed'\n"
      "  exit 0\n"
      "fi",
      shell_quoted(claim.string()));
}

Withdrawal withdraw_launch(const fs::path& claim) {
  const fs::path written = claim.string() + ".written";
  write_file_atomically(written, "withdrawn\n");
  const bool is_first = ::link(written.c_str(), claim.c_str()) == 0;
  const int error = errno;
  ::unlink(written.c_str());
  if (is_first) {
    sync_to_disk(claim.parent_path());
    return {true};
  }
  errno = error;
  if (error != EEXIST) throw_errno("cannot make {}", claim.string());
  std::istringstream words(read_file(claim));
  std::string what, id;
  words >> what >> id;
  return {what == "withdrawn", id};
}

}  // namespace kolo::jobs
