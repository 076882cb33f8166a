#include "launch/agent_protocol.h"

#include "base/errors.h"

namespace kolo::launch {

std::string encode(const AgentHello& message) {
  return ByteWriter().string(message.host).string(message.from).i32(message.processors).bytes();
}

AgentHello decode_agent_hello(std::string_view payload) {
  ByteReader reader(payload);
  AgentHello message;
  message.host = reader.string();
  message.from = reader.string();
  message.processors = reader.i32();
  reader.finish();
  return message;
}

std::string encode(const StartJob& message) {
  ByteWriter writer;
  writer.string(message.directory).strings(message.argv).strings(message.environment);
  writer.string(message.secret);
  writer.u8(static_cast<std::uint8_t>(message.bind_to)).u32(message.grace_ms);
  writer.u32(static_cast<std::uint32_t>(message.ranks.size()));
  for (const auto& rank : message.ranks) writer.i32(rank.rank).strings(rank.environment);
  return writer.bytes();
}

StartJob decode_start_job(std::string_view payload) {
  ByteReader reader(payload);
  StartJob message;
  message.directory = reader.string();
  message.argv = reader.strings();
  message.environment = reader.strings();
  message.secret = reader.string();
  message.bind_to = static_cast<BindTo>(reader.u8());
  message.grace_ms = reader.u32();
  message.ranks.resize(reader.count(2 * sizeof(std::uint32_t)));
  for (auto& rank : message.ranks) {
    rank.rank = reader.i32();
    rank.environment = reader.strings();
  }
  reader.finish();
  if (message.argv.empty() || message.ranks.empty())
    throw_error(ErrorCode::corruption, "a job without a program or without ranks");
  return message;
}

std::string encode(const RankOutput& message) {
  return ByteWriter()
      .i32(message.rank)
      .u8(static_cast<std::uint8_t>(message.stream))
      .raw(message.bytes)
      .bytes();
}

RankOutput decode_rank_output(std::string_view payload) {
  ByteReader reader(payload);
  RankOutput message;
  message.rank = reader.i32();
  message.stream = static_cast<Stream>(reader.u8());
  message.bytes = payload.substr(5);
  return message;
}

std::string encode(const RankExit& message) {
  return ByteWriter().i32(message.rank).i32(message.status).bytes();
}

RankExit decode_rank_exit(std::string_view payload) {
  ByteReader reader(payload);
  RankExit message;
  message.rank = reader.i32();
  message.status = reader.i32();
  reader.finish();
  return message;
}

}  // namespace kolo::launch
