#include "tune/protocol/trial_channels.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "base/errors.h"

namespace kolo::tune {
namespace {

// Places in the epoll set that are no channels.
constexpr ChannelId kListener = 0;
constexpr ChannelId kRetryTimer = 1;

/// When descriptors have run out, connections wait so long before the next attempt to take them.
constexpr auto kRetryAfter = std::chrono::milliseconds(100);
/// Connections that have not said whose they are: so many, with so long a first line.
constexpr std::size_t kMostStrangers = 128;
constexpr std::size_t kLongestHello = 4096;
/// A channel with so many questions is read again when half of them have answers.
constexpr int kMostUnanswered = 256;
/// Rounds of reading for a run that has ended; what it left fits into far fewer.
constexpr int kLastRounds = 1000;

}  // namespace

TrialChannels::TrialChannels() : path_(directory_.socket()) {
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  retry_ = Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.string().size() >= sizeof address.sun_path)
    throw_error(ErrorCode::invalid_argument, "the path of TMPDIR is too long for a socket: {}",
                path_.string());
  std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
  if (!epoll_.valid() || !listener_.valid() || !retry_.valid() ||
      ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), 128) != 0)
    throw_errno("cannot listen at {}", path_.string());
  watch(listener_, kListener);
  watch(retry_, kRetryTimer);
}

TrialChannels::~TrialChannels() = default;

void TrialChannels::watch(const Fd& fd, ChannelId number) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = number;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0)
    throw_errno("cannot wait for messages of trials");
}

void TrialChannels::add(ChannelId number, Channel channel) {
  watch(channel.socket, number);
  channels_.emplace(number, std::make_shared<Channel>(std::move(channel)));
}

TrialChannels::Opened TrialChannels::open(RunId id) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw_errno("cannot make a socket for a trial");
  Opened opened{Fd(ends[1]), {}, next_++};
  for (int i = 0; i < 4; ++i) opened.token += fmt::format("{:08x}", random_());
  tokens_[opened.token] = id;
  add(opened.channel, {Fd(ends[0]), id, {}});
  return opened;
}

void TrialChannels::close(RunId id, const Take& take, const Refuse& refuse) {
  for (auto& [number, channel] : channels_)
    if (channel->id == id) {
      channel->may_rest = false;
      wake(number, *channel);
    }
  // Whoever has connected for this trial but was not heard yet is heard first.
  for (int round = 0; round < kLastRounds && read_round(take, refuse); ++round) {
  }
  std::erase_if(tokens_, [&](const auto& entry) { return entry.second == id; });
  std::erase_if(channels_, [&](const auto& entry) { return entry.second->id == id; });
}

bool TrialChannels::accept_all() {
  for (bool any = false;; any = true) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) pause_accepting();
      return any;
    }
    drop_a_stranger();
    add(next_++, {std::move(socket), std::nullopt, {}});
  }
}

/// No descriptors are left. The listener stays readable, so it is left alone for a while.
void TrialChannels::pause_accepting() {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  itimerspec when{};
  when.it_value.tv_nsec = std::chrono::nanoseconds(kRetryAfter).count();
  ::timerfd_settime(retry_.get(), 0, &when, nullptr);
}

void TrialChannels::resume_accepting() {
  std::uint64_t expirations = 0;
  [[maybe_unused]] const auto got = ::read(retry_.get(), &expirations, sizeof expirations);
  watch(listener_, kListener);
}

/// Makes place for one more connection: the one that has been silent for longest goes.
void TrialChannels::drop_a_stranger() {
  const auto is_stranger = [](const auto& entry) { return !entry.second->id; };
  const auto count = std::count_if(channels_.begin(), channels_.end(), is_stranger);
  if (static_cast<std::size_t>(count) >= kMostStrangers)
    channels_.erase(std::find_if(channels_.begin(), channels_.end(), is_stranger));
}

bool TrialChannels::read_round(const Take& take, const Refuse& refuse) {
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  bool any = false;
  for (int i = 0; i < count; ++i) {
    const ChannelId number = events[static_cast<std::size_t>(i)].data.u64;
    if (number == kListener) {
      any = accept_all() || any;
      continue;
    }
    if (number == kRetryTimer) {
      resume_accepting();
      continue;
    }
    any = true;
    std::shared_ptr<Channel> channel;
    {
      const auto found = channels_.find(number);
      if (found == channels_.end()) continue;
      channel = found->second;
    }
    if (read(number, *channel, take, refuse)) continue;
    channels_.erase(number);
  }
  return any;
}

bool TrialChannels::read(ChannelId number, Channel& channel, const Take& take,
                         const Refuse& refuse) {
  std::array<char, 64U << 10> buffer;
  const ssize_t got = ::recv(channel.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  channel.partial.append(buffer.data(), static_cast<std::size_t>(got));
  std::size_t start = 0;
  for (auto end = channel.partial.find('\n'); end != std::string::npos;
       end = channel.partial.find('\n', start)) {
    const std::string_view text(channel.partial.data() + start, end - start);
    start = end + 1;
    if (text.empty()) continue;
    try {
      TrialLine line = parse_trial_line(text);
      if (line.kind == TrialLine::Kind::hello && !channel.id) {
        const auto found = tokens_.find(line.token);
        if (found == tokens_.end()) return false;  // a stranger
        channel.id = found->second;
        continue;
      }
      if (!channel.id) return false;
      if (line.kind == TrialLine::Kind::report || line.kind == TrialLine::Kind::checkpoint)
        count_question(channel);
      take(number, *channel.id, std::move(line));
    } catch (const std::exception& error) {  // whatever it is, only this trial is to blame
      if (channel.id) refuse(*channel.id, error.what());
    }
  }
  channel.partial.erase(0, start);
  if (channel.partial.size() <= (channel.id ? kLongestLine : kLongestHello)) return true;
  if (channel.id) refuse(*channel.id, "it sent a line without an end");
  return false;
}

void TrialChannels::count_question(Channel& channel) {
  if (++channel.unanswered < kMostUnanswered || channel.rests || !channel.may_rest) return;
  channel.rests = ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, channel.socket.get(), nullptr) == 0;
}

void TrialChannels::wake(ChannelId number, Channel& channel) {
  if (std::exchange(channel.rests, false)) watch(channel.socket, number);
}

void TrialChannels::answer(ChannelId number, std::string_view line) {
  const auto found = channels_.find(number);
  if (found == channels_.end()) return;
  if (--found->second->unanswered <= kMostUnanswered / 2) wake(number, *found->second);
  send(number, line);
}

void TrialChannels::send(ChannelId number, std::string_view line) {
  const auto found = channels_.find(number);
  if (found == channels_.end()) return;
  [[maybe_unused]] const auto sent =
      ::send(found->second->socket.get(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace kolo::tune
