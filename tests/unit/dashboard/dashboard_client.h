// Asks a dashboard as programs do, byte by byte.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>

#include "base/errors.h"
#include "base/json.h"
#include "base/socket.h"
#include "dashboard/dashboard.h"

namespace kolo::dashboard {

inline constexpr const char* kToken = "0123456789abcdef";

class DashboardClient {
 protected:
  static Fd connect(const Dashboard& dashboard) {
    const auto address =
        SocketAddress::from_numeric("127.0.0.1", static_cast<std::uint16_t>(dashboard.port()));
    return connect_tcp(address, Deadline::after(kPatience));
  }
  /// What comes until the other side closes, or until `wanted` is in it.
  static std::string read_until(int socket, const std::string& wanted = "") {
    std::string text;
    const auto deadline = Deadline::after(kPatience);
    for (;;) {
      if (!wanted.empty() && text.find(wanted) != std::string::npos) return text;
      pollfd ready{socket, POLLIN, 0};
      if (::poll(&ready, 1, deadline.poll_timeout_ms()) <= 0) return text + "[nothing more]";
      char chunk[4096];
      const auto got = ::recv(socket, chunk, sizeof chunk, 0);
      if (got <= 0) return text;
      text.append(chunk, static_cast<std::size_t>(got));
    }
  }
  /// Sends what the other side takes before it closes the connection.
  static void send(const Fd& socket, const std::string& text) {
    try {
      send_all(socket.get(), text, Deadline::after(kPatience), "the dashboard");
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::timeout);
    }
  }
  /// One request on a connection of its own. `headers` end their lines with \r\n.
  static std::string ask(const Dashboard& dashboard, const std::string& line,
                         const std::string& headers, const std::string& body = "") {
    const Fd socket = connect(dashboard);
    send(socket, fmt::format("{} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n{}\r\n{}",
                             line, body.size(), headers, body));
    return read_until(socket.get());
  }
  static std::string get(const Dashboard& dashboard, const std::string& path) {
    return ask(dashboard, "GET " + path, kHost + kBearer);
  }
  static Json json_in(const std::string& answer) {
    return parse_json(answer.substr(answer.find("\r\n\r\n") + 4), "the answer");
  }

  static inline const std::string kHost = "Host: localhost:1\r\n";
  static inline const std::string kBearer = fmt::format("Authorization: Bearer {}\r\n", kToken);
  static constexpr std::chrono::seconds kPatience{20};
};

}  // namespace kolo::dashboard
