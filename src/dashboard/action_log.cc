#include "dashboard/action_log.h"

#include <fcntl.h>

#include <ctime>

#include "base/errors.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/host.h"
#include "base/log.h"
#include "tune/trial/trial_names.h"

namespace kolo::dashboard {

void ActionLog::note(const std::string& who, const std::string& action, const Json& what,
                     const std::string& outcome) {
  if (file_.empty()) return;
  const MutexLock lock(mutex_);
  try {
    std::filesystem::create_directories(file_.parent_path());
    const Fd file(::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kPrivateFile));
    if (!file.valid()) throw_errno("cannot open {}", file_.string());
    const auto now = static_cast<double>(std::time(nullptr));
    const Json line{{"time", tune::date_text(now)},
                    {"user", user_name()},
                    {"from", who},
                    {"action", action},
                    {"what", what},
                    {"outcome", outcome}};
    write_all(file.get(), json_text(line) + "\n", file_.string());
  } catch (const std::exception& error) {
    log::warning("an action was not written down: {}", error.what());
  }
}

}  // namespace kolo::dashboard
