// The one exception type of kolo, and the kinds of failure a caller can tell apart.
//
// docs/errors.md lists, for each code, what still works afterwards and what to do next.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kolo {

/// Kinds of failure. The numbers are persistent (they appear in files and messages): never reuse
/// one.
enum class ErrorCode : int {
  invalid_argument = 1,     ///< The call is wrong; the same call will fail again.
  not_found = 2,            ///< A named thing does not exist.
  already_exists = 3,       ///< A name is taken.
  failed_precondition = 4,  ///< Right call, wrong moment (for example before init()).
  unavailable = 5,          ///< A service cannot be reached now; trying again may help.
  timeout = 6,              ///< A wait came to its end.
  peer_lost = 7,            ///< Another rank died, left or stalled; see Error::rank().
  cancelled = 8,            ///< Somebody asked for the work to end.
  io = 9,                   ///< The operating system refused to read, write or create something.
  corruption = 10,          ///< Data is damaged or comes from somewhere else.
  unsupported = 11,         ///< kolo, as built or on this machine, cannot do this.
  internal = 12,            ///< A defect of kolo.
  trial_failed = 13,        ///< A program or function that kolo ran for you has failed.
};

/// The code's name as written in logs and documents, e.g. "peer_lost".
std::string_view to_string(ErrorCode code) noexcept;

/// Thrown by every kolo function that fails. what() reads "code: what was being done: what is
/// wrong".
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message);
  Error(ErrorCode code, const std::string& message, int rank);

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

  /// For peer_lost: the rank, in the communicator that the call was made on, that was lost.
  [[nodiscard]] std::optional<int> rank() const noexcept { return rank_; }

  /// The message without the code in front.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }

 private:
  ErrorCode code_;
  std::optional<int> rank_;
  std::string message_;
};

}  // namespace kolo
