#include "comm/rendezvous/client.h"

#include <poll.h>

#include <algorithm>

#include "base/errors.h"
#include "comm/rendezvous/caller.h"

namespace kolo::comm::rendezvous {
namespace {

/// The server answers in time by itself; this much later it is taken to be stuck.
constexpr auto kServerGrace = std::chrono::seconds(5);
constexpr auto kRetryPause = std::chrono::milliseconds(20);

std::string place(const SocketAddress& server) {
  return fmt::format("the rendezvous server at {}", server.str());
}

}  // namespace

Client::Client(ClientOptions options, Deadline deadline) : options_(std::move(options)) {
  auto connections = connect({Purpose::news, Purpose::meetings}, deadline);
  news_ = std::move(connections[0]);
  idle_.push_back(std::move(connections[1]));
}

Client::~Client() {
  const std::string goodbye = frame(Message::goodbye, "");
  auto say = [&](int socket) {
    // If there is no room for six bytes, the closed connection says the same.
    [[maybe_unused]] auto sent =
        ::send(socket, goodbye.data(), goodbye.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  };
  say(news_.get());
  for (const auto& connection : idle_) say(connection.get());
}

std::vector<Fd> Client::connect(const std::vector<Purpose>& purposes, Deadline deadline) const {
  while (true) {
    try {
      std::vector<Caller> callers;
      for (const Purpose purpose : purposes)
        callers.emplace_back(options_.server, purpose, options_.topology.rank(), deadline,
                             place(options_.server));
      std::vector<Fd> connections;
      for (Caller& caller : callers) connections.push_back(caller.prove(options_.secret, deadline));
      return connections;
    } catch (const Error& error) {
      // A connection can be dropped in a crowd of strangers; one that is refused stays so.
      if (!Caller::was_dropped(error) || deadline.left() < kRetryPause) throw;
    }
    ::poll(nullptr, 0, static_cast<int>(kRetryPause.count()));
  }
}

Fd Client::take_idle(Deadline deadline) {
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      Fd connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return std::move(connect({Purpose::meetings}, deadline)[0]);
}

std::vector<std::string> Client::allgather(std::string_view key, const std::vector<int>& members,
                                           std::string_view mine, Deadline deadline) {
  const Deadline server_deadline = Deadline::at(deadline.when() + kServerGrace);
  Meet request{std::string(key), members, std::string(mine),
               std::chrono::ceil<std::chrono::milliseconds>(deadline.left())};
  const std::string message = frame(Message::meet, encode(request));
  if (message.size() > kRequestLimit)
    throw_error(ErrorCode::invalid_argument,
                "meeting '{}': the message has {} bytes, but at most {} are allowed", key,
                mine.size(), kRequestLimit);

  Fd connection = take_idle(server_deadline);  // not put back if anything below throws
  send_all(connection.get(), message, server_deadline, place(options_.server));
  Frame reply =
      receive_frame(connection.get(), kReplyLimit, server_deadline, place(options_.server));
  std::vector<std::string> met;
  std::optional<Failure> failure;
  if (reply.type == static_cast<std::uint8_t>(Message::met))
    met = decode_met(reply.payload);
  else if (reply.type == static_cast<std::uint8_t>(Message::failure))
    failure = decode_failure(reply.payload);
  else
    throw_error(ErrorCode::corruption,
                "{} uses another protocol; run kolo and the program in the same version",
                place(options_.server));
  {
    MutexLock lock(mutex_);
    idle_.push_back(std::move(connection));
  }
  if (!failure) return met;
  if (failure->code == ErrorCode::peer_lost)
    throw Error(ErrorCode::peer_lost,
                fmt::format("meeting '{}': rank {} is gone: {}", key, failure->rank, failure->text),
                failure->rank);
  if (failure->code == ErrorCode::timeout)
    throw Error(ErrorCode::timeout, fmt::format("meeting '{}': {}", key, failure->text),
                failure->rank);
  throw Error(failure->code, failure->text);
}

std::vector<Departure> Client::take_news() {
  if (news_ended_) throw_error(ErrorCode::unavailable, "{} is gone", place(options_.server));
  std::vector<Departure> news;
  char chunk[4096];
  while (!news_ended_) {
    ssize_t got = ::recv(news_.get(), chunk, sizeof chunk, MSG_DONTWAIT);
    if (got > 0) news_parser_.feed({chunk, static_cast<std::size_t>(got)});
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) news_ended_ = true;
    if (got < 0 && errno == EAGAIN) break;
  }
  while (auto message = news_parser_.next())
    if (message->type == static_cast<std::uint8_t>(Message::departure))
      news.push_back(decode_departure(message->payload));
  if (news_ended_) {
    // Whoever hosted the place is gone with it; a launcher's end is told by the exception.
    if (options_.host_rank >= 0 && options_.host_rank != options_.topology.rank())
      news.push_back({options_.host_rank, "connection lost"});
    else if (news.empty())
      throw_error(ErrorCode::unavailable, "{} is gone", place(options_.server));
  }
  return news;
}

void Client::report(std::string_view activity) {
  if (unsent_.empty()) unsent_ = frame(Message::activity, activity);
  const auto sent =
      ::send(news_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) unsent_.erase(0, static_cast<std::size_t>(sent));
}

}  // namespace kolo::comm::rendezvous
