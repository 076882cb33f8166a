#include "kolo/error.h"

namespace kolo {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::already_exists: return "already_exists";
    case ErrorCode::failed_precondition: return "failed_precondition";
    case ErrorCode::unavailable: return "unavailable";
    case ErrorCode::timeout: return "timeout";
    case ErrorCode::peer_lost: return "peer_lost";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::io: return "io";
    case ErrorCode::corruption: return "corruption";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::internal: return "internal";
    case ErrorCode::trial_failed: return "trial_failed";
  }
  return "unknown";
}

Error::Error(ErrorCode code, const std::string& message)
    : std::runtime_error(std::string(to_string(code)) + ": " + message),
      code_(code),
      message_(message) {}

Error::Error(ErrorCode code, const std::string& message, int rank) : Error(code, message) {
  rank_ = rank;
}

}  // namespace kolo
