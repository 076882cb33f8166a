#include "support/relay.h"

#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include <condition_variable>
#include <cstring>
#include <map>

#include "base/errors.h"

namespace kolo::test {
namespace {

constexpr std::size_t kLargestMessage = 256 * 1024;

std::string pack(const Message& message) {
  std::string bytes;
  for (const std::string& field : message) {
    const auto size = static_cast<std::uint32_t>(field.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes.append(field);
  }
  return bytes;
}

Message unpack(const char* bytes, std::size_t size) {
  Message message;
  for (std::size_t at = 0; at + sizeof(std::uint32_t) <= size;) {
    std::uint32_t length;
    std::memcpy(&length, bytes + at, sizeof length);
    at += sizeof length;
    message.emplace_back(bytes + at, length);
    at += length;
  }
  return message;
}

class RelayBootstrap final : public comm::Bootstrap {
 public:
  RelayBootstrap(int rank, std::vector<int> hosts, int control_fd, int news_fd)
      : topology_(rank, std::move(hosts)), control_fd_(control_fd), news_fd_(news_fd) {}

  const Topology& topology() const noexcept override { return topology_; }
  std::string describe() const override { return "forked by a test"; }

  std::vector<std::string> allgather(std::string_view key, const std::vector<int>& members,
                                     std::string_view mine, Deadline deadline) override {
    std::unique_lock lock(mutex_);
    const std::string request = std::to_string(next_request_++);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left());
    send_message(control_fd_, {"gather", request, std::string(key), join_numbers(members),
                               std::to_string(left.count()), std::string(mine)});
    // The parent answers at the deadline too; waiting longer is only for a parent that is busy.
    const auto patience = Deadline::after(deadline.left() + std::chrono::seconds(10));
    Message answer = wait_for_answer(lock, request, patience);
    if (answer[0] == "failed") {
      const auto code = static_cast<ErrorCode>(std::stoi(answer[2]));
      throw Error(code, fmt::format("meeting '{}': {}", key, answer[4]), std::stoi(answer[3]));
    }
    return {answer.begin() + 2, answer.end()};
  }

  int news_fd() const noexcept override { return news_fd_; }

  std::vector<comm::Departure> take_news() override {
    auto message = receive_message(news_fd_, Deadline::after(std::chrono::seconds(0)));
    if (!message) throw_error(ErrorCode::io, "the parent is gone");
    return {comm::departure_by_status(std::stoi(message->at(1)), std::stoi(message->at(2)))};
  }

 private:
  // Several threads may wait for answers on the one socket: whoever finds nobody reading reads, and
  // keeps for the others what is theirs.
  Message wait_for_answer(std::unique_lock<std::mutex>& lock, const std::string& request,
                          Deadline deadline) {
    for (;;) {
      if (auto found = answers_.find(request); found != answers_.end()) {
        Message answer = std::move(found->second);
        answers_.erase(found);
        return answer;
      }
      if (deadline.passed()) throw_error(ErrorCode::timeout, "the parent did not answer");
      if (reading_) {
        changed_.wait_until(lock, deadline.when());
        continue;
      }
      reading_ = true;
      lock.unlock();
      auto message = receive_message(control_fd_, deadline);
      lock.lock();
      reading_ = false;
      if (message) answers_[message->at(1)] = *message;
      changed_.notify_all();
    }
  }

  Topology topology_;
  int control_fd_, news_fd_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Message> answers_;  // guarded by mutex_
  int next_request_ = 0;                    // guarded by mutex_
  bool reading_ = false;                    // guarded by mutex_
};

}  // namespace

std::pair<Fd, Fd> make_message_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
    throw_errno("cannot make a socket pair");
  return {Fd(fds[0]), Fd(fds[1])};
}

void send_message(int fd, const Message& message) {
  const std::string bytes = pack(message);
  KOLO_CHECK(bytes.size() <= kLargestMessage);
  while (::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0)
    if (errno != EINTR) throw_errno("cannot send '{}' ({} bytes)", message[0], bytes.size());
}

std::optional<Message> receive_message(int fd, Deadline deadline) {
  std::vector<char> bytes(kLargestMessage);
  for (;;) {
    const ssize_t size = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size > 0) return unpack(bytes.data(), static_cast<std::size_t>(size));
    if (size == 0 || (errno != EAGAIN && errno != EINTR)) return std::nullopt;
    pollfd poll{fd, POLLIN, 0};
    if (deadline.passed()) return std::nullopt;
    ::poll(&poll, 1, deadline.poll_timeout_ms());
  }
}

std::shared_ptr<comm::Bootstrap> make_relay_bootstrap(int rank, std::vector<int> host_of_rank,
                                                      int control_fd, int news_fd) {
  return std::make_shared<RelayBootstrap>(rank, std::move(host_of_rank), control_fd, news_fd);
}

std::string join_numbers(const std::vector<int>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

std::vector<int> split_numbers(const std::string& text) {
  std::vector<int> numbers;
  for (std::size_t at = 0; at < text.size();) {
    numbers.push_back(std::stoi(text.substr(at)));
    at = text.find(',', at);
    if (at == std::string::npos) break;
    ++at;
  }
  return numbers;
}

}  // namespace kolo::test
