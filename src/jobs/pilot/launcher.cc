#include "jobs/pilot/launcher.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "base/deadline.h"
#include "base/errors.h"
#include "base/fd.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/signal_echo.h"
#include "jobs/database/waker.h"
#include "jobs/pilot/node_links.h"
#include "jobs/pilot/pilot.h"

namespace kolo::jobs {
namespace {

/// SIGUSR1 and SIGUSR2 are what batch systems warn with.
constexpr int kEndSignals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};

/// Signals that end the launcher, as a descriptor; as before when this is gone.
class EndSignals {
 public:
  EndSignals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : kEndSignals) ::sigaddset(&signals, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
    fd_ = Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_.valid()) throw_errno("cannot watch for signals");
    ::signal(SIGPIPE, SIG_IGN);
    has_come = false;
    set_interrupt_check(&any_has_come);
  }
  ~EndSignals() {
    set_interrupt_check(nullptr);
    while (take() != 0) {
    }  // one that nobody has read would end the process now
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// The first one that has come; 0 = none.
  [[nodiscard]] int take() const {
    signalfd_siginfo info{};
    if (::read(fd(), &info, sizeof info) != sizeof info) return 0;
    has_come = true;
    return static_cast<int>(info.ssi_signo);
  }

 private:
  /// Waits for the database and for nodes ask this, on whatever thread.
  static bool any_has_come() noexcept {
    sigset_t pending;
    if (has_come) return true;
    if (::sigpending(&pending) != 0) return false;
    return std::any_of(std::begin(kEndSignals), std::end(kEndSignals),
                       [&pending](int signal) { return ::sigismember(&pending, signal) == 1; });
  }

  static inline std::atomic<bool> has_come{false};
  sigset_t before_{};
  Fd fd_;
};

/// Counts requests to end, without warnings of batch systems.
struct EndRequests {
  int count = 0;
  SignalEcho echo;
};

void stop(Pilot& pilot, int signal, EndRequests& requests) {
  const bool is_warning = signal == SIGUSR1 || signal == SIGUSR2;
  if (!is_warning && requests.echo.is_echo()) return;
  if (!is_warning) ++requests.count;
  if (requests.count < 2)
    pilot.stop(fmt::format("the launcher was told to end (signal {})", signal));
  else
    pilot.stop_at_once(fmt::format("the launcher was told to end again (signal {})", signal));
}

int poll_timeout_ms(Clock::Time until) { return Deadline::at(until).poll_timeout_ms(); }

/// To its end; false: others took this launcher for lost and have its jobs.
bool run_pilot(JobDatabase& jobs, const LauncherOptions& options, Clock::Time end,
               const EndSignals& signals, LauncherSummary& summary) {
  NodeLinks links(options);
  // The first contact: a database that does not answer now is an error at once.
  Pilot pilot(jobs, options, links.nodes(), links, system_clock(), end, summary);
  const Waker waker(jobs);
  EndRequests requests;
  try {
    while (!pilot.is_over()) {
      std::vector<pollfd> polls = {{signals.fd(), POLLIN, 0}, {waker.fd(), POLLIN, 0}};
      const std::size_t own = polls.size();
      links.add_to(polls);
      ::poll(polls.data(), polls.size(), poll_timeout_ms(pilot.next_turn()));
      if (polls[0].revents != 0) {
        if (const int signal = signals.take(); signal != 0) stop(pilot, signal, requests);
      }
      if (polls[1].revents != 0) {
        waker.clear();
        pilot.notified();
      }
      links.tell(pilot, polls.data() + own);
      pilot.turn();
      links.flush();
    }
  } catch (const Error& error) {
    // Only the fence of the leases throws this.
    if (error.code() != ErrorCode::failed_precondition) throw;
    log::warning("{}", error.message());
    return false;
  }
  pilot.finish();
  return true;
}

}  // namespace

LauncherSummary run_launcher(JobDatabase& jobs, const LauncherOptions& options) {
  if (options.nodes.empty()) throw_error(ErrorCode::invalid_argument, "the launcher has no nodes");
  const EndSignals signals;
  LauncherSummary summary;
  const auto never = std::chrono::hours(24 * 365 * 10);
  const auto end = system_clock().now() + (options.time_limit ? *options.time_limit : never);
  while (!run_pilot(jobs, options, end, signals, summary))
    log::warning("the launcher starts again as a new one");
  return summary;
}

}  // namespace kolo::jobs
