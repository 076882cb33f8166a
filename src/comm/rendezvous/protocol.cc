#include "comm/rendezvous/protocol.h"

#include <algorithm>

#include "base/errors.h"

namespace kolo::comm::rendezvous {
namespace {

constexpr std::string_view kServerLabel = "kolo rendezvous 2 server";
constexpr std::string_view kClientLabel = "kolo rendezvous 2 client";

std::string joined(std::string_view a, std::string_view b) {
  // Both have a fixed size in this version, so that no other pair gives the same text.
  return std::string(a).append(b);
}

}  // namespace

std::string encode(const Hello& message) {
  return ByteWriter()
      .raw(kMagic)
      .u16(kVersion)
      .u8(static_cast<std::uint8_t>(message.purpose))
      .i32(message.rank)
      .raw(message.nonce)
      .bytes();
}

Hello decode_hello(std::string_view payload) {
  ByteReader reader(payload);
  if (reader.raw(kMagic.size()) != kMagic)
    throw_error(ErrorCode::corruption, "not a message of kolo");
  if (auto version = reader.u16(); version != kVersion)
    throw_error(ErrorCode::unsupported, "protocol version {} instead of {}", version, kVersion);
  Hello message;
  message.purpose = static_cast<Purpose>(reader.u8());
  if (message.purpose < Purpose::meetings || message.purpose > Purpose::membership)
    throw_error(ErrorCode::corruption, "unknown purpose");
  message.rank = reader.i32();
  message.nonce = reader.raw(kNonceBytes);
  reader.finish();
  return message;
}

std::string encode(const Challenge& message) {
  return ByteWriter().raw(message.nonce).raw(message.proof).bytes();
}

Challenge decode_challenge(std::string_view payload) {
  ByteReader reader(payload);
  Challenge message;
  message.nonce = reader.raw(kNonceBytes);
  message.proof = reader.raw(kProofBytes);
  reader.finish();
  return message;
}

std::string encode(const Meet& message) {
  ByteWriter writer;
  writer.string(message.key).u64(static_cast<std::uint64_t>(message.patience.count()));
  writer.u32(static_cast<std::uint32_t>(message.members.size()));
  for (int member : message.members) writer.i32(member);
  writer.string(message.mine);
  return writer.bytes();
}

Meet decode_meet(std::string_view payload) {
  ByteReader reader(payload);
  Meet message;
  message.key = reader.string();
  // Bounded, so that it can be added to a clock.
  constexpr std::uint64_t kLongest = 1000ULL * 3600 * 24 * 365;
  message.patience = std::chrono::milliseconds(std::min<std::uint64_t>(reader.u64(), kLongest));
  message.members.resize(reader.count(sizeof(std::int32_t)));
  for (int& member : message.members) member = reader.i32();
  message.mine = reader.string();
  reader.finish();
  return message;
}

std::string encode(const Failure& message) {
  return ByteWriter()
      .u8(static_cast<std::uint8_t>(message.code))
      .i32(message.rank)
      .string(message.text)
      .bytes();
}

Failure decode_failure(std::string_view payload) {
  ByteReader reader(payload);
  Failure message;
  message.code = static_cast<ErrorCode>(reader.u8());
  message.rank = reader.i32();
  message.text = reader.string();
  reader.finish();
  return message;
}

std::string encode(const Departure& message) {
  return ByteWriter()
      .i32(message.rank)
      .u8(static_cast<std::uint8_t>(message.kind))
      .string(message.reason)
      .bytes();
}

Departure decode_departure(std::string_view payload) {
  ByteReader reader(payload);
  Departure message;
  message.rank = reader.i32();
  const auto kind = static_cast<DepartureKind>(reader.u8());
  // A kind that is not known here says no more than that the rank is gone.
  if (kind == DepartureKind::finished || kind == DepartureKind::failed) message.kind = kind;
  message.reason = reader.string();
  reader.finish();
  return message;
}

std::string encode_met(const std::vector<std::string>& contributions) {
  return ByteWriter().strings(contributions).bytes();
}

std::vector<std::string> decode_met(std::string_view payload) {
  ByteReader reader(payload);
  std::vector<std::string> contributions = reader.strings();
  reader.finish();
  return contributions;
}

Challenge make_challenge(const Secret& secret, std::string_view hello_payload) {
  Challenge challenge;
  challenge.nonce = random_nonce();
  challenge.proof = secret.prove(kServerLabel, joined(hello_payload, challenge.nonce));
  return challenge;
}

std::string answer_challenge(const Secret& secret, std::string_view hello_payload,
                             std::string_view challenge_payload) {
  const Challenge challenge = decode_challenge(challenge_payload);
  if (!secret.check(kServerLabel, joined(hello_payload, challenge.nonce), challenge.proof))
    throw_error(ErrorCode::unavailable,
                "the rendezvous server does not know the secret of this job; the environment is "
                "probably left over from another job");
  return secret.prove(kClientLabel, joined(hello_payload, challenge_payload));
}

bool check_answer(const Secret& secret, std::string_view hello_payload,
                  std::string_view challenge_payload, std::string_view answer) {
  return secret.check(kClientLabel, joined(hello_payload, challenge_payload), answer);
}

}  // namespace kolo::comm::rendezvous
