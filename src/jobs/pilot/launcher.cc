#include "jobs/pilot/launcher.h"

#include <signal.h>
#include <sys/signalfd.h>

#include "base/errors.h"
#include "base/log.h"
#include "jobs/pilot/pilot.h"

namespace kolo::jobs {
namespace {

/// Signals that end the launcher, as a descriptor; as before when this is gone.
class EndSignals {
 public:
  EndSignals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    // SIGUSR1 and SIGUSR2 are what batch systems warn with.
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
      ::sigaddset(&signals, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
    fd_ = Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_.valid()) throw_errno("cannot watch for signals");
    ::signal(SIGPIPE, SIG_IGN);
  }
  ~EndSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

 private:
  sigset_t before_{};
  Fd fd_;
};

}  // namespace

LauncherSummary run_launcher(JobDatabase& jobs, const LauncherOptions& options) {
  if (options.nodes.empty()) throw_error(ErrorCode::invalid_argument, "the launcher has no nodes");
  const EndSignals signals;
  LauncherSummary summary;
  const auto never = std::chrono::hours(24 * 365 * 10);
  const Deadline end =
      Deadline::after(options.time_limit ? std::chrono::nanoseconds(*options.time_limit) : never);
  for (;;) {
    Pilot pilot(jobs, options, end, signals.fd(), summary);
    if (pilot.run() == Pilot::Outcome::done) return summary;
    log::warning("this launcher was taken for lost and its jobs are with others; beginning again");
  }
}

}  // namespace kolo::jobs
