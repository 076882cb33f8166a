// The first reason for a departure is kept: what follows is usually a consequence of it. Listeners
// are called under calling_, so that unlisten() returns only when its listener is not running, and
// a new listener hears of past departures before any later one.
#include "comm/liveness.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/errors.h"

namespace kolo::comm {
namespace {

Fd open_pidfd(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

}  // namespace

Liveness::Liveness(std::shared_ptr<Bootstrap> bootstrap)
    : bootstrap_(std::move(bootstrap)), wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_fd_.valid()) throw_errno("cannot create an eventfd");
  thread_ = std::thread([this] { run(); });
}

Liveness::~Liveness() {
  stopping_ = true;
  wake();
  thread_.join();
}

void Liveness::watch(int rank, pid_t pid) {
  if (pid == ::getpid()) return;
  Fd pidfd = open_pidfd(pid);
  if (!pidfd.valid()) {
    if (errno == ESRCH) return declare({rank, "process is gone"});
    throw_errno("cannot watch process {} of rank {}", pid, rank);
  }
  {
    MutexLock lock(mutex_);
    watched_.emplace_back(rank, std::move(pidfd));
  }
  wake();
}

std::optional<std::string> Liveness::departure_of(int rank) const {
  MutexLock lock(mutex_);
  for (const auto& departure : departures_)
    if (departure.rank == rank) return departure.reason;
  return std::nullopt;
}

std::vector<Departure> Liveness::departures() const {
  MutexLock lock(mutex_);
  return departures_;
}

void Liveness::declare(const Departure& departure) {
  std::lock_guard calling(calling_);
  std::vector<std::function<void(const Departure&)>> listeners;
  {
    MutexLock lock(mutex_);
    const auto known = std::ranges::find(departures_, departure.rank, &Departure::rank);
    if (known == departures_.end()) {
      departures_.push_back(departure);
      departed_count_.fetch_add(1, std::memory_order_release);
    } else if (known->kind == DepartureKind::unknown && departure.kind != DepartureKind::unknown) {
      *known = departure;  // a process that is gone is seen before the launcher says how it went
    } else {
      return;  // the first reason is the true one
    }
    for (const auto& [token, listener] : listeners_) listeners.push_back(listener);
  }
  for (const auto& listener : listeners) listener(departure);
}

int Liveness::listen(std::function<void(const Departure&)> listener) {
  std::lock_guard calling(calling_);
  std::vector<Departure> past;
  int token;
  {
    MutexLock lock(mutex_);
    token = next_token_++;
    listeners_.emplace_back(token, listener);
    past = departures_;
  }
  for (const auto& departure : past) listener(departure);
  return token;
}

void Liveness::unlisten(int token) {
  std::lock_guard calling(calling_);
  MutexLock lock(mutex_);
  std::erase_if(listeners_, [&](const auto& entry) { return entry.first == token; });
}

void Liveness::wake() noexcept {
  std::uint64_t one = 1;
  [[maybe_unused]] auto written = ::write(wake_fd_.get(), &one, sizeof one);
}

void Liveness::run() {
  bool has_news_fd = true;
  while (!stopping_) {
    std::vector<pollfd> polls = {{wake_fd_.get(), POLLIN, 0}};
    std::vector<int> ranks = {-1};
    const int news = has_news_fd ? bootstrap_->news_fd() : -1;
    polls.push_back({news, POLLIN, 0});  // poll(2) ignores negative descriptors
    ranks.push_back(-1);
    {
      MutexLock lock(mutex_);
      for (const auto& [rank, pidfd] : watched_) {
        polls.push_back({pidfd.get(), POLLIN, 0});
        ranks.push_back(rank);
      }
    }
    if (::poll(polls.data(), polls.size(), -1) < 0) continue;  // EINTR
    if (polls[0].revents != 0) {
      std::uint64_t count;
      [[maybe_unused]] auto got = ::read(wake_fd_.get(), &count, sizeof count);
    }
    // News first: the launcher knows the reason, a pidfd only that the process is gone.
    if (polls[1].revents != 0) {
      try {
        for (const auto& departure : bootstrap_->take_news()) declare(departure);
      } catch (const std::exception&) {
        has_news_fd = false;  // the launcher is gone; local ranks are still watched
      }
    }
    for (std::size_t i = 2; i < polls.size(); ++i) {
      if (polls[i].revents == 0) continue;
      declare({ranks[i], "its process ended"});
      MutexLock lock(mutex_);
      std::erase_if(watched_, [&](const auto& entry) { return entry.first == ranks[i]; });
    }
  }
}

}  // namespace kolo::comm
