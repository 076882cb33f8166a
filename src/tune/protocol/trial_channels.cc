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
#include <utility>

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
constexpr std::size_t kMostUnanswered = 256;
/// A run with so much (cost_of) that has no answer or is not whole yet is not read. One line fits
/// in any case.
constexpr std::size_t kMostBytes = 32U << 20;
/// A run may have so many connections, and more of them wait.
constexpr std::size_t kMostConnections = 64;
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
  if (channel.run) channel.run->channels.insert(number);
  channels_.emplace(number, std::make_shared<Channel>(std::move(channel)));
}

void TrialChannels::remove(ChannelId number) {
  waiting_.erase(number);
  const auto node = channels_.extract(number);
  if (node.empty() || !node.mapped()->run) return;
  Channel& channel = *node.mapped();
  Run& run = *channel.run;
  run.channels.erase(number);
  run.bytes -= std::exchange(channel.counted, 0);
  if (!channel.questions.empty())
    gone_.emplace(number, Gone{channel.run, std::move(channel.questions)});
  settle(run);
}

TrialChannels::Opened TrialChannels::open(RunId id) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw_errno("cannot make a socket for a trial");
  Opened opened{Fd(ends[1]), {}, next_++};
  for (int i = 0; i < 4; ++i) opened.token += fmt::format("{:08x}", random_());
  const auto run = std::make_shared<Run>(Run{id});
  tokens_[opened.token] = run;
  add(opened.channel, {Fd(ends[0]), run});
  return opened;
}

void TrialChannels::close(RunId id, const Take& take, const Refuse& refuse) {
  for (const auto& [token, run] : tokens_)
    if (run->id == id) {
      run->ends = true;
      settle(*run);
    }
  // Whoever has connected for this trial but was not heard yet is heard first.
  hear_waiting(take, refuse);
  for (int round = 0; round < kLastRounds && read_round(take, refuse); ++round) {
  }
  const auto is_of_run = [id](const auto& run) { return run && run->id == id; };
  std::erase_if(tokens_, [&](const auto& entry) { return is_of_run(entry.second); });
  std::erase_if(channels_, [&](const auto& entry) { return is_of_run(entry.second->run); });
  std::erase_if(gone_, [&](const auto& entry) { return is_of_run(entry.second.run); });
}

bool TrialChannels::accept_all() {
  for (bool any = false;; any = true) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) pause_accepting();
      return any;
    }
    drop_a_stranger();
    add(next_++, {std::move(socket), nullptr});
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
  const auto is_stranger = [](const auto& entry) { return !entry.second->run; };
  const auto count = std::count_if(channels_.begin(), channels_.end(), is_stranger);
  if (static_cast<std::size_t>(count) >= kMostStrangers)
    remove(std::find_if(channels_.begin(), channels_.end(), is_stranger)->first);
}

void TrialChannels::hear_waiting(const Take& take, const Refuse& refuse) {
  for (const ChannelId number : std::set(waiting_)) {
    const auto found = channels_.find(number);
    if (found == channels_.end()) continue;
    const auto channel = found->second;
    waiting_.erase(number);
    set_reading(number, *channel, true);
    if (!take_lines(number, *channel, 0, take, refuse)) remove(number);
  }
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
    remove(number);
    hear_waiting(take, refuse);
  }
  return any;
}

bool TrialChannels::read(ChannelId number, Channel& channel, const Take& take,
                         const Refuse& refuse) {
  std::array<char, 64U << 10> buffer;
  const ssize_t got = ::recv(channel.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  const std::size_t searched = channel.partial.size();
  channel.partial.append(buffer.data(), static_cast<std::size_t>(got));
  return take_lines(number, channel, searched, take, refuse);
}

bool TrialChannels::take_lines(ChannelId number, Channel& channel, std::size_t searched,
                               const Take& take, const Refuse& refuse) {
  std::size_t start = 0;
  for (auto end = channel.partial.find('\n', searched); end != std::string::npos;
       end = channel.partial.find('\n', start)) {
    const std::string_view text(channel.partial.data() + start, end - start);
    start = end + 1;
    if (text.empty()) continue;
    try {
      TrialLine line = parse_trial_line(text);
      if (!channel.run) {
        const Welcome answer = welcome(number, channel, line);
        if (answer == Welcome::yes) continue;
        return answer == Welcome::later;  // its hello is read again then
      }
      if (line.kind == TrialLine::Kind::report || line.kind == TrialLine::Kind::checkpoint)
        count_question(channel, cost_of(text));
      take(number, channel.run->id, std::move(line));
    } catch (const std::exception& error) {  // whatever it is, only this trial is to blame
      if (channel.run) refuse(channel.run->id, error.what());
    }
  }
  channel.partial.erase(0, start);
  if (!channel.run) return channel.partial.size() <= kLongestHello;
  channel.run->bytes += channel.partial.size();
  channel.run->bytes -= std::exchange(channel.counted, channel.partial.size());
  settle(*channel.run);
  if (channel.partial.size() <= kLongestLine) return true;
  refuse(channel.run->id, "it sent a line without an end");
  return false;
}

TrialChannels::Welcome TrialChannels::welcome(ChannelId number, Channel& channel,
                                              const TrialLine& line) {
  const auto found = line.kind == TrialLine::Kind::hello ? tokens_.find(line.token) : tokens_.end();
  if (found == tokens_.end()) return Welcome::no;
  const auto& run = found->second;
  if (run->channels.size() >= kMostConnections && !run->ends) {
    set_reading(number, channel, false);
    waiting_.insert(number);
    return Welcome::later;
  }
  channel.run = run;
  run->channels.insert(number);
  return Welcome::yes;
}

void TrialChannels::count_question(Channel& channel, std::size_t bytes) {
  channel.questions.push_back(bytes);
  channel.run->bytes += channel.questions.back();
  ++channel.run->unanswered;
}

void TrialChannels::count_answer(Run& run, Questions& questions) {
  if (questions.empty()) return;
  run.bytes -= questions.front();
  --run.unanswered;
  questions.pop_front();
}

/// A run that has too much is read again when answers have made room. Where none is due, because
/// the lines of its channels are not whole yet, one of these channels goes on.
void TrialChannels::settle(const Run& run) {
  const bool is_full = run.bytes >= kMostBytes;
  bool one_goes_on = is_full && run.unanswered == 0;
  for (const ChannelId number : run.channels) {
    Channel& channel = *channels_.at(number);
    const bool goes_on = !is_full || (one_goes_on && !channel.partial.empty());
    if (is_full && goes_on) one_goes_on = false;
    const std::size_t most = channel.rests ? kMostUnanswered / 2 + 1 : kMostUnanswered;
    set_reading(number, channel, run.ends || (goes_on && channel.questions.size() < most));
  }
}

void TrialChannels::set_reading(ChannelId number, Channel& channel, bool reads) {
  if (reads != channel.rests) return;
  if (reads)
    watch(channel.socket, number);
  else if (::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, channel.socket.get(), nullptr) != 0)
    return;
  channel.rests = !reads;
}

void TrialChannels::answer(ChannelId number, std::string_view line) {
  if (const auto gone = gone_.find(number); gone != gone_.end()) {
    const auto run = gone->second.run;
    count_answer(*run, gone->second.questions);
    if (gone->second.questions.empty()) gone_.erase(gone);
    return settle(*run);
  }
  const auto found = channels_.find(number);
  if (found == channels_.end() || !found->second->run) return;
  count_answer(*found->second->run, found->second->questions);
  settle(*found->second->run);
  send(number, line);
}

void TrialChannels::send(ChannelId number, std::string_view line) {
  const auto found = channels_.find(number);
  if (found == channels_.end()) return;
  [[maybe_unused]] const auto sent =
      ::send(found->second->socket.get(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace kolo::tune
