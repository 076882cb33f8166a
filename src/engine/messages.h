// The messages between the members of a process set and their leader, version 1.
//
//   member → leader   submit   requests that this rank has submitted
//                     join     this rank has no more data
//                     trace    events for the timeline
//   leader → member   decide   what to do next, the same list to all
//                     lost     a member is gone; the set is over
//                     join_noted   that you have joined is known
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/frames.h"
#include "engine/operation.h"

namespace kolo::runtime {

/// Numbers are part of the protocol: never reuse one.
enum class MessageType : std::uint8_t {
  submit = 1,
  join = 2,
  decide = 3,
  lost = 4,
  trace = 5,
  join_noted = 6,
};

/// One thing that all members do next.
struct Decision {
  enum class Kind : std::uint8_t {
    execute = 1,  ///< `requests`, as one collective if there are several
    fail = 2,     ///< `requests`, with `code`, `text` and, unless it is -1, the `rank` to blame
    joined = 3,   ///< all have joined, `rank` as the last
  };
  Kind kind = Kind::execute;
  std::vector<Request> requests;
  ErrorCode code = ErrorCode::internal;
  std::string text;
  int rank = -1;
  /// Of a failure: members that had not submitted it. What they submit under the name before they
  /// hear of the failure is another operation.
  std::vector<int> absent{};
};

struct Lost {
  int member = -1;
  std::string reason;
};

/// Of one request, and of several that travel or are decided together. A frame may be larger by
/// what is said of them (star.h has its limit).
inline constexpr std::size_t kRequestLimit = std::size_t{4} << 20;
std::size_t encoded_bytes(const Request& request);
std::size_t encoded_bytes(const Decision& decision);

// Frames, and what is in them. Decoding throws corruption.
std::string encode_submit(const std::vector<Request>& requests);
std::vector<Request> decode_submit(std::string_view payload);
std::string encode_decisions(const std::vector<Decision>& decisions);
std::vector<Decision> decode_decisions(std::string_view payload);
std::string encode_lost(const Lost& lost);
Lost decode_lost(std::string_view payload);
std::string encode_join();
std::string encode_join_noted();
std::string encode_trace(std::string_view lines);

}  // namespace kolo::runtime
