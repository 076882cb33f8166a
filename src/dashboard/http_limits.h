// How much of a server its clients may use.
#pragma once

#include <chrono>
#include <cstddef>

namespace kolo::dashboard {

struct HttpLimits {
  std::size_t connections = 64;
  std::size_t request_bytes = 64 * 1024;    ///< head and body together
  std::chrono::milliseconds request{5000};  ///< from its first byte to its last
  std::chrono::milliseconds answer{60000};  ///< until the client has taken it
  std::chrono::milliseconds idle{30000};    ///< between requests
};

}  // namespace kolo::dashboard
