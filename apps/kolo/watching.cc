#include "watching.h"

#include <signal.h>
#include <unistd.h>

#include "base/interrupt.h"
#include "base/signal_echo.h"
#include "tune/output/progress.h"

namespace kolo::app {
namespace {

std::atomic<bool> interrupted{false};
SignalEcho last_signal;

void on_signal(int signal) {
  if (last_signal.is_echo()) return;
  if (interrupted.exchange(true)) ::_exit(128 + signal);
}

}  // namespace

const std::atomic<bool>* catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
  set_interrupt_check([]() noexcept { return interrupted.load(); });
  return &interrupted;
}

std::vector<std::shared_ptr<tune::Observer>> observers_for(bool json, bool quiet) {
  if (json) return {tune::make_json_events(stdout)};
  if (quiet) return {};
  if (::isatty(STDOUT_FILENO) != 0) return {tune::make_live_table(stdout)};
  return {tune::make_plain_lines(stdout, std::chrono::seconds(5))};
}

}  // namespace kolo::app
