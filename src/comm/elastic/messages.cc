#include "comm/elastic/messages.h"

#include "base/deadline.h"
#include "base/errors.h"

namespace kolo::comm::elastic {
namespace {

/// Numbers are part of the protocol: never reuse one.
enum class Kind : std::uint8_t {
  ready = 1,
  finished = 2,
  leaving = 3,
  group = 4,
  change = 5,
  retire = 6,
  over = 7,
  alive = 8,
  wait = 9,
  timeout = 10,
};

std::string frame_of(Kind kind, const ByteWriter& writer) {
  return encode_frame(static_cast<std::uint8_t>(kind), writer.bytes());
}

std::string frame_of(const Ready& ready) {
  return frame_of(Kind::ready, ByteWriter().u64(ready.left).i32(ready.blamed));
}
std::string frame_of(const Finished& finished) {
  return frame_of(Kind::finished, ByteWriter().u64(finished.generation));
}
std::string frame_of(const Leaving&) { return frame_of(Kind::leaving, ByteWriter()); }
std::string frame_of(const Alive&) { return frame_of(Kind::alive, ByteWriter()); }
std::string frame_of(const Timeout& timeout) {
  return frame_of(Kind::timeout,
                  ByteWriter().u64(static_cast<std::uint64_t>(timeout.of_operations.count())));
}

std::string frame_of(const GroupPlan& group) {
  ByteWriter writer;
  writer.u64(group.generation).i32(group.rank).u16(group.port);
  writer.u32(static_cast<std::uint32_t>(group.host_of_rank.size()));
  for (const int host : group.host_of_rank) writer.i32(host);
  return frame_of(Kind::group, writer);
}
std::string frame_of(const Change& change) {
  return frame_of(Kind::change, ByteWriter().u64(change.generation));
}
std::string frame_of(const Retire&) { return frame_of(Kind::retire, ByteWriter()); }
std::string frame_of(const Over& over) {
  return frame_of(Kind::over, ByteWriter().u64(over.generation));
}
std::string frame_of(const Wait&) { return frame_of(Kind::wait, ByteWriter()); }

[[noreturn]] void throw_unknown(const Frame& frame) {
  throw_error(ErrorCode::corruption,
              "message {} does not belong to an elastic job; run kolo and the program in the same "
              "version",
              frame.type);
}

/// It is added to a clock.
std::chrono::milliseconds read_time(ByteReader& reader) {
  constexpr std::chrono::milliseconds kMost = kLongestTime;
  const std::uint64_t count = reader.u64();
  if (count > static_cast<std::uint64_t>(kMost.count()))
    throw_error(ErrorCode::corruption, "{} ms is no timeout", count);
  return std::chrono::milliseconds(count);
}

}  // namespace

std::string encode(const FromWorker& message) {
  return std::visit([](const auto& one) { return frame_of(one); }, message);
}
std::string encode(const FromLauncher& message) {
  return std::visit([](const auto& one) { return frame_of(one); }, message);
}

FromWorker decode_from_worker(const Frame& frame) {
  ByteReader reader(frame.payload);
  FromWorker message;
  switch (static_cast<Kind>(frame.type)) {
    case Kind::ready: {
      const auto left = reader.u64();
      message = Ready{left, reader.i32()};
      break;
    }
    case Kind::finished: message = Finished{reader.u64()}; break;
    case Kind::leaving: message = Leaving{}; break;
    case Kind::alive: message = Alive{}; break;
    case Kind::timeout: message = Timeout{read_time(reader)}; break;
    default: throw_unknown(frame);
  }
  reader.finish();
  return message;
}

FromLauncher decode_from_launcher(const Frame& frame) {
  ByteReader reader(frame.payload);
  FromLauncher message;
  switch (static_cast<Kind>(frame.type)) {
    case Kind::group: {
      GroupPlan group;
      group.generation = reader.u64();
      group.rank = reader.i32();
      group.port = reader.u16();
      const auto count = reader.count(sizeof(std::uint32_t));
      for (std::uint32_t i = 0; i < count; ++i) group.host_of_rank.push_back(reader.i32());
      if (group.rank < 0 || group.rank >= static_cast<int>(count))
        throw_error(ErrorCode::corruption, "a group of {} has no rank {}", count, group.rank);
      message = std::move(group);
      break;
    }
    case Kind::change: message = Change{reader.u64()}; break;
    case Kind::retire: message = Retire{}; break;
    case Kind::over: message = Over{reader.u64()}; break;
    case Kind::wait: message = Wait{}; break;
    default: throw_unknown(frame);
  }
  reader.finish();
  return message;
}

Secret secret_of(const Secret& job, Generation generation) {
  return Secret::from_bytes(job.prove("kolo elastic generation", std::to_string(generation)));
}

}  // namespace kolo::comm::elastic
