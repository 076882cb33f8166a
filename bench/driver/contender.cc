#include "driver/contender.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>
#include <stdexcept>

#include "support/driver_link.h"
#include "support/median.h"

namespace bench {

namespace {

constexpr double kStartSeconds = 30.0;
constexpr double kAnswerSeconds = 60.0;

double monotonic_seconds() { return static_cast<double>(monotonic_ns()) * 1e-9; }

/// Reads up to the end of a line; false when `seconds` have passed or the other side is gone.
bool read_line(int fd, std::string& pending, std::string& line, double seconds) {
  const double end = monotonic_seconds() + seconds;
  for (;;) {
    const auto newline = pending.find('\n');
    if (newline != std::string::npos) {
      line = pending.substr(0, newline);
      pending.erase(0, newline + 1);
      return true;
    }
    const double left = end - monotonic_seconds();
    pollfd item{fd, POLLIN, 0};
    if (left <= 0 || ::poll(&item, 1, static_cast<int>(left * 1e3) + 1) < 0) return false;
    if (item.revents == 0) continue;
    char chunk[65536];
    const ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n <= 0) return false;
    pending.append(chunk, static_cast<std::size_t>(n));
  }
}

/// Buffers so many that together they are four times the second-level cache, within reason.
std::size_t buffer_count(std::size_t bytes, std::size_t limit) {
  const long l2 = std::max(sysconf(_SC_LEVEL2_CACHE_SIZE), 1L << 20);
  const std::size_t wanted = (4 * static_cast<std::size_t>(l2) + bytes - 1) / bytes;
  return std::clamp<std::size_t>(wanted, 2, limit);
}

}  // namespace

Reception::Reception(const std::string& directory)
    : directory_(directory), path_(directory + "/driver.sock") {
  fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof address.sun_path) throw std::runtime_error("too long: " + path_);
  std::memcpy(address.sun_path, path_.c_str(), path_.size());
  if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd_, 64) != 0) {
    throw std::runtime_error("cannot listen at " + path_ + ": " + std::strerror(errno));
  }
}

Reception::~Reception() {
  ::close(fd_);
  ::unlink(path_.c_str());
}

Reception::Call Reception::next(double seconds) {
  pollfd item{fd_, POLLIN, 0};
  Call call;
  if (::poll(&item, 1, static_cast<int>(seconds * 1e3)) <= 0) return call;
  const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return call;
  std::string pending, line, verb;
  double stamp_ns = 0;
  if (read_line(fd, pending, line, 5.0)) {
    std::istringstream words(line);
    if (words >> verb >> call.contender >> call.rank >> stamp_ns && verb == "hello") {
      call.fd = fd;
      call.first_allreduce = stamp_ns * 1e-9;
      return call;
    }
  }
  ::close(fd);
  return call;
}

Contender::Contender(Reception& reception, const ContenderSpec& spec)
    : name_(spec.name), log_(reception.directory() + "/" + spec.name + ".log") {
  ranks_.resize(static_cast<std::size_t>(spec.ranks));
  const double started = monotonic_seconds();
  for (const auto& command : spec.commands) {
    processes_.emplace_back(command, spec.environment, log_);
  }
  double last = started;
  for (int present = 0; present < spec.ranks;) {
    if (monotonic_seconds() > started + kStartSeconds) fail("did not start");
    if (std::any_of(processes_.begin(), processes_.end(), [](Process& p) { return p.ended(); })) {
      fail("ended instead of starting");
    }
    const auto call = reception.next(0.2);
    if (call.fd < 0) continue;
    if (call.contender != name_ || call.rank < 0 || call.rank >= spec.ranks) {
      ::close(call.fd);
      continue;
    }
    ranks_[static_cast<std::size_t>(call.rank)] = {call.fd, ""};
    last = std::max(last, call.first_allreduce);
    ++present;
  }
  start_seconds_ = last - started;
}

Contender::~Contender() {
  for (auto& rank : ranks_) {
    if (rank.fd < 0) continue;
    constexpr char kQuit[] = "quit\n";
    [[maybe_unused]] const auto sent = ::send(rank.fd, kQuit, sizeof kQuit - 1, MSG_NOSIGNAL);
    ::close(rank.fd);
  }
  for (auto& process : processes_) process.wait(5.0);
}

double Contender::measure(const std::string& mode, std::size_t bytes, const Effort& effort) {
  std::ostringstream run;
  const std::size_t warm_up = bytes <= 64 << 10 ? 50 : bytes <= 1 << 20 ? 10 : 2;
  run << "run " << mode << ' ' << bytes << ' ' << buffer_count(bytes, effort.max_buffers) << ' '
      << std::min(warm_up, effort.max_warm_up);
  say(run.str());
  double estimate = 1e-9;
  for (auto& rank : ranks_) {
    std::istringstream answer(hear(rank, kAnswerSeconds));
    std::string verb;
    double seconds = 0;
    answer >> verb >> seconds;
    estimate = std::max(estimate, seconds);
  }
  const auto iterations =
      std::clamp<std::size_t>(static_cast<std::size_t>(effort.batch_seconds / estimate), 1, 1000);
  const double batch = static_cast<double>(iterations) * estimate;
  const auto batches = std::clamp(static_cast<std::size_t>(effort.seconds / batch),
                                  effort.min_batches, effort.max_batches);
  std::ostringstream go;
  go << "go " << batches << ' ' << iterations;
  say(go.str());
  std::vector<double> slowest(batches, 0.0);
  for (auto& rank : ranks_) {
    std::istringstream answer(hear(rank, kAnswerSeconds));
    std::string verb;
    answer >> verb;
    for (auto& slot : slowest) {
      double seconds = 0;
      if (!(answer >> seconds)) fail("gave too few times");
      slot = std::max(slot, seconds);
    }
  }
  return median(slowest) / static_cast<double>(iterations);
}

double Contender::cpu_used() const {
  double seconds = 0;
  for (const auto& process : processes_) {
    for (const pid_t pid : family_of(process.pid())) seconds += cpu_seconds(pid);
  }
  return seconds;
}

void Contender::say(const std::string& line) {
  const std::string text = line + "\n";
  for (auto& rank : ranks_) {
    if (::send(rank.fd, text.data(), text.size(), MSG_NOSIGNAL) < 0) fail("lost a rank");
  }
}

std::string Contender::hear(Rank& rank, double seconds) {
  std::string line;
  if (!read_line(rank.fd, rank.pending, line, seconds)) fail("stopped answering");
  if (line.starts_with("error ")) fail(line.substr(6));
  return line;
}

void Contender::fail(const std::string& what) const {
  throw std::runtime_error(name_ + " " + what + "\n" + tail_of(log_, 12));
}

}  // namespace bench
