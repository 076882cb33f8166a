#include "tune/protocol/trial_channels.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>

#include "base/errors.h"

namespace kolo::tune {
namespace {

constexpr ChannelId kListener = 0;

std::string new_token() {
  std::random_device device;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", device());
  return token;
}

}  // namespace

TrialChannels::TrialChannels() : path_(directory_.socket()) {
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.string().size() >= sizeof address.sun_path)
    throw_error(ErrorCode::invalid_argument, "the path of TMPDIR is too long for a socket: {}",
                path_.string());
  std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
  if (!epoll_.valid() || !listener_.valid() ||
      ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), 128) != 0)
    throw_errno("cannot listen at {}", path_.string());
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kListener;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event);
}

TrialChannels::~TrialChannels() = default;

void TrialChannels::add(ChannelId number, Channel channel) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = number;
  const int fd = channel.socket.get();
  {
    const std::lock_guard lock(mutex_);
    channels_.emplace(number, std::make_shared<Channel>(std::move(channel)));
  }
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

TrialChannels::Opened TrialChannels::open(RunId id) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw_errno("cannot make a socket for a trial");
  Opened opened{Fd(ends[1]), new_token(), next_++};
  tokens_[opened.token] = id;
  add(opened.channel, {Fd(ends[0]), id, {}});
  return opened;
}

void TrialChannels::close(RunId id, const Take& take, const Refuse& refuse) {
  // Whoever has connected for this trial but was not heard yet is heard first.
  read_ready(take, refuse);
  std::erase_if(tokens_, [&](const auto& entry) { return entry.second == id; });
  const std::lock_guard lock(mutex_);
  std::erase_if(channels_, [&](const auto& entry) { return entry.second->id == id; });
}

void TrialChannels::accept_all() {
  for (;;) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid()) return;
    add(next_++, {std::move(socket), std::nullopt, {}});
  }
}

void TrialChannels::read_ready(const Take& take, const Refuse& refuse) {
  std::array<epoll_event, 64> events{};
  for (bool again = true; again;) {
    again = false;
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      const ChannelId number = events[static_cast<std::size_t>(i)].data.u64;
      again = true;
      if (number == kListener) {
        accept_all();
        continue;
      }
      std::shared_ptr<Channel> channel;
      {
        const std::lock_guard lock(mutex_);
        const auto found = channels_.find(number);
        if (found == channels_.end()) continue;
        channel = found->second;
      }
      if (read(number, *channel, take, refuse)) continue;
      const std::lock_guard lock(mutex_);
      channels_.erase(number);
    }
  }
}

bool TrialChannels::read(ChannelId number, Channel& channel, const Take& take,
                         const Refuse& refuse) {
  std::array<char, 64U << 10> buffer{};
  const ssize_t got = ::recv(channel.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  channel.partial.append(buffer.data(), static_cast<std::size_t>(got));
  if (channel.partial.size() > kLongestLine) {
    if (channel.id) refuse(*channel.id, "it sent a line without an end");
    return false;
  }
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
        const std::lock_guard lock(mutex_);
        channel.id = found->second;
        continue;
      }
      if (!channel.id) return false;
      take(number, *channel.id, std::move(line));
    } catch (const Error& error) {
      if (channel.id) refuse(*channel.id, error.message());
    }
  }
  channel.partial.erase(0, start);
  return true;
}

void TrialChannels::send(ChannelId number, std::string_view line) {
  const std::lock_guard lock(mutex_);
  const auto found = channels_.find(number);
  if (found == channels_.end()) return;
  [[maybe_unused]] const auto sent =
      ::send(found->second->socket.get(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace kolo::tune
