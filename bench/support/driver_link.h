// The line between a rank that is measured and the driver that measures it.
//
// A path-named Unix socket: it needs nothing of the system under test, works for threads and
// processes alike and across network namespaces, and a rank that waits for its next command sleeps
// in read(), so that contenders that are not being measured take no time from the one that is.
//
//   rank   -> driver   hello CONTENDER RANK STAMP   monotonic ns, after the first allreduce
//   driver -> rank     run MODE BYTES BUFFERS WARM-UP-ITERATIONS
//   rank   -> driver   warm SECONDS                 per operation, verified and warmed up
//   driver -> rank     go BATCHES ITERATIONS
//   rank   -> driver   done SECONDS…                one per batch
//   driver -> rank     quit
//   rank   -> driver   error TEXT                   at any time, instead of an answer
#pragma once

#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>
#include <utility>

namespace bench {

inline std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

/// Ties this thread to the n-th core it may run on, so that every contender runs alike.
inline void pin_to_core(int n) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  const int cores = CPU_COUNT(&allowed);
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || seen++ != n % cores) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

/// Line-wise text over a connected socket. Throws std::runtime_error when the other side is gone.
class DriverLink {
 public:
  explicit DriverLink(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) throw std::runtime_error("path too long: " + path);
    std::memcpy(address.sun_path, path.c_str(), path.size());
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot reach the bench driver at " + path);
    }
  }
  DriverLink(DriverLink&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), pending_(std::move(other.pending_)) {}
  DriverLink& operator=(DriverLink&&) = delete;
  ~DriverLink() {
    if (fd_ >= 0) ::close(fd_);
  }

  void say(const std::string& line) {
    const std::string text = line + "\n";
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t n = ::send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) throw std::runtime_error("the bench driver is gone");
      sent += static_cast<std::size_t>(n);
    }
  }

  std::string hear() {
    for (;;) {
      const auto end = pending_.find('\n');
      if (end != std::string::npos) {
        std::string line = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        return line;
      }
      char chunk[4096];
      const ssize_t n = ::read(fd_, chunk, sizeof chunk);
      if (n <= 0) throw std::runtime_error("the bench driver is gone");
      pending_.append(chunk, static_cast<std::size_t>(n));
    }
  }

 private:
  int fd_;
  std::string pending_;
};

/// What every rank program is told on its command line: DRIVER-SOCKET CONTENDER [pin|free] [more…].
struct RankArguments {
  std::string driver;
  std::string contender;
  bool pin = false;

  RankArguments(int argc, char** argv) {
    if (argc < 4) {
      throw std::runtime_error("started by scripts/bench: DRIVER-SOCKET CONTENDER pin|free …");
    }
    driver = argv[1];
    contender = argv[2];
    pin = std::string(argv[3]) == "pin";
  }
};

}  // namespace bench
