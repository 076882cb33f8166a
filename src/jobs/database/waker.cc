#include "jobs/database/waker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/errors.h"
#include "jobs/database/body.h"
#include "jobs/database/schema.h"

namespace kolo::jobs {

using namespace std::chrono_literals;

Waker::Waker(JobDatabase& jobs)
    : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      watch_(body_of(jobs).store->watch(kChannel)) {
  if (!event_.valid()) throw_errno("cannot create an event");
  thread_ = std::thread([this] { run(); });
}

Waker::~Waker() {
  over_ = true;
  watch_->cancel();
  thread_.join();
}

void Waker::run() {
  while (!over_) {
    bool any = false;
    try {
      any = watch_->wait(Deadline::after(60s));
    } catch (const std::exception&) {
      std::this_thread::sleep_for(200ms);
    }
    const std::uint64_t one = 1;
    if (any) [[maybe_unused]]
      auto written = ::write(event_.get(), &one, sizeof one);
  }
}

void Waker::clear() const {
  std::uint64_t count = 0;
  [[maybe_unused]] auto got = ::read(event_.get(), &count, sizeof count);
}

}  // namespace kolo::jobs
