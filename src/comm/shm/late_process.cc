#include "comm/shm/late_process.h"

#include <fmt/format.h>

#include "base/env.h"
#include "base/files.h"
#include "kolo/error.h"

namespace kolo::comm {
namespace {

bool is_stopped(pid_t process) {
  try {
    const std::string status = read_file(fmt::format("/proc/{}/stat", process));
    const auto name_end = status.rfind(')');  // the state follows the name and a blank
    return name_end != std::string::npos && name_end + 2 < status.size() &&
           (status[name_end + 2] == 'T' || status[name_end + 2] == 't');
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string why_late(pid_t process) {
  if (is_stopped(process))
    return fmt::format("a signal or a debugger has stopped it (kill -CONT {} lets it go on)",
                       process);
  constexpr const char* kAlive = "it is alive, but stuck or late";
  if (!environment("KOLO_TRIAL_ID")) return kAlive;
  // The rank that reports waits in its report while the scheduler holds the trial.
  return fmt::format(
      "{}; if the study holds the trial until others have come as far, let the trial save "
      "checkpoints, with which it is paused instead, or raise the limit",
      kAlive);
}

}  // namespace kolo::comm
