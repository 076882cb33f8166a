#include "comm/elastic/notice.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/errors.h"

namespace kolo::comm::elastic {
namespace {

std::atomic<bool> is_given{false};
std::atomic<int> event_of_notice{-1};
std::atomic<pid_t> process_of_notice{-1};

void remember(int signal) {
  // A fork, as of a data loader, is no worker: the signal means to it what it means to any process.
  if (::getpid() != process_of_notice) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);  // it comes when this returns
    return;
  }
  const int error = errno;
  is_given = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event_of_notice.load(), &one, sizeof one);
  errno = error;
}

}  // namespace

Notice::Notice(const std::vector<int>& signals) : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.valid()) throw_errno("cannot create an eventfd");
  is_given = false;
  event_of_notice = event_.get();
  process_of_notice = ::getpid();
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;  // the program's own calls are not to be disturbed
  ::sigemptyset(&action.sa_mask);
  for (const int signal : signals) {
    struct sigaction before {};
    if (::sigaction(signal, nullptr, &before) != 0) continue;
    // A program that has its own idea of the signal keeps it.
    if (before.sa_handler != SIG_DFL) continue;
    if (::sigaction(signal, &action, nullptr) == 0) before_.emplace_back(signal, before);
  }
}

Notice::~Notice() {
  for (const auto& [signal, before] : before_) ::sigaction(signal, &before, nullptr);
  event_of_notice = -1;
}

bool Notice::given() const noexcept { return is_given; }

}  // namespace kolo::comm::elastic
