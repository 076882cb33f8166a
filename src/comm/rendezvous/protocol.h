// The protocol between ranks and the rendezvous server, version 5.
//
// Handshake, on each new connection (C = a rank, S = the server):
//   C→S  hello      magic, version, purpose, rank, C's nonce
//   S→C  challenge  S's nonce, proof("server", hello + S's nonce)
//   C→S  proof      proof("client", hello + challenge)
//   S→C  welcome    nothing; only now is C sure that it was not dropped in a crowd of strangers
// where proof(label, text) is an HMAC under the job's secret. Each side proves that it knows the
// secret, for this connection and this rank only; the secret itself is never sent. A hello of
// another version is answered by goodbye. Then, depending on the purpose:
//   meetings  C→S meet, answered by S→C met or failure; one at a time
//   news      S→C departure, for each rank that is gone, past ones first; C→S activity, what the
//             rank does (../activity.h), to servers that have asked for it by KOLO_ACTIVITY
//   both      C→S goodbye before it closes on purpose
//   engine, wire  what members of a process set and of a TCP wire say: engine/star.h,
//   wire/tcp_wire.h
//   membership  what workers of an elastic job and their launcher say: elastic/messages.h; the rank
//   in the hello is the worker's number
//
// The contents are not encrypted: they are addresses and names of segments, never user data.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/frames.h"
#include "base/secret.h"
#include "comm/bootstrap.h"
#include "kolo/error.h"

namespace kolo::comm::rendezvous {

inline constexpr std::string_view kMagic = "KOLO";
inline constexpr std::uint16_t kVersion = 5;

/// Numbers are part of the protocol: never reuse one.
enum class Message : std::uint8_t {
  hello = 1,
  challenge = 2,
  proof = 3,
  meet = 4,
  met = 5,
  failure = 6,
  departure = 7,
  goodbye = 8,
  welcome = 9,
  activity = 10,
};

enum class Purpose : std::uint8_t {
  meetings = 1,
  news = 2,
  engine = 3,
  wire = 4,
  membership = 5,
};

// Limits of type + payload. A stranger cannot make the server keep more than the first.
inline constexpr std::size_t kHandshakeLimit = 128;
inline constexpr std::size_t kRequestLimit = 16U << 20;
inline constexpr std::size_t kReplyLimit = 1U << 30;
inline constexpr std::size_t kKeyLimit = 1024;

struct Hello {
  Purpose purpose = Purpose::meetings;
  int rank = 0;
  std::string nonce;
};
struct Challenge {
  std::string nonce;
  std::string proof;
};
struct Meet {
  std::string key;
  std::vector<int> members;
  std::string mine;
  std::chrono::milliseconds patience{0};  ///< until the server answers with timeout
};
struct Failure {
  ErrorCode code = ErrorCode::internal;
  int rank = -1;
  std::string text;
};

// Payloads. Decoding throws corruption for whatever does not fit exactly.
std::string encode(const Hello& message);
std::string encode(const Challenge& message);
std::string encode(const Meet& message);
std::string encode(const Failure& message);
std::string encode(const Departure& message);
std::string encode_met(const std::vector<std::string>& contributions);
Hello decode_hello(std::string_view payload);
Challenge decode_challenge(std::string_view payload);
Meet decode_meet(std::string_view payload);
Failure decode_failure(std::string_view payload);
Departure decode_departure(std::string_view payload);
std::vector<std::string> decode_met(std::string_view payload);

inline std::string frame(Message type, std::string_view payload) {
  return encode_frame(static_cast<std::uint8_t>(type), payload);
}

// Proofs of the handshake.
Challenge make_challenge(const Secret& secret, std::string_view hello_payload);
/// Throws unavailable if the other side does not know the secret.
std::string answer_challenge(const Secret& secret, std::string_view hello_payload,
                             std::string_view challenge_payload);
bool check_answer(const Secret& secret, std::string_view hello_payload,
                  std::string_view challenge_payload, std::string_view answer);

}  // namespace kolo::comm::rendezvous
