// Threads that serve a program in the background take none of its signals.
#pragma once

#include <signal.h>

namespace kolo {

/// While it lives, the calling thread takes no signals. Threads that it starts meanwhile never take
/// any. At its end the calling thread takes again those that it took before, also when a thread
/// could not be started.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace kolo
