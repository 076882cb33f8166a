// What is said to and by custodians that listen: reservations, and what a host has.
#include <bit>

#include "exec/protocol.h"
#include "exec/protocol_bytes.h"

namespace kolo::exec {
namespace {

void write(ByteWriter& writer, const Amounts& amounts) {
  writer.i32(amounts.slots).i32(amounts.gpus);
  writer.u32(static_cast<std::uint32_t>(amounts.named.size()));
  for (const auto& [name, amount] : amounts.named)
    writer.string(name).u64(std::bit_cast<std::uint64_t>(amount));
}

Amounts read_amounts(ByteReader& reader) {
  Amounts amounts;
  amounts.slots = reader.i32();
  amounts.gpus = reader.i32();
  for (auto left = reader.count(12); left > 0; --left) {
    const std::string name = reader.string();
    amounts.named[name] = std::bit_cast<double>(reader.u64());
  }
  return amounts;
}

}  // namespace

std::string encode(const ReservationOrder& message) {
  ByteWriter writer;
  write(writer.u64(message.id), message.want);
  return writer.bytes();
}

ReservationOrder decode_reservation(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) {
    const ReservationId id = reader.u64();
    return ReservationOrder{id, read_amounts(reader)};
  });
}

std::string encode(const Refusal& message) {
  return ByteWriter().u64(message.id).string(message.reason).bytes();
}

Refusal decode_refusal(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) {
    const ReservationId id = reader.u64();
    return Refusal{id, reader.string()};
  });
}

std::string encode(const Holdings& message) {
  ByteWriter writer;
  write(writer, message.total);
  write(writer, message.free);
  writer.u8(message.is_draining ? 1 : 0);
  writer.u32(static_cast<std::uint32_t>(message.held.size()));
  for (const auto& holding : message.held) {
    write(writer.string(holding.owner), holding.amounts);
    write(writer, holding.processors);
  }
  return writer.bytes();
}

Holdings decode_holdings(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) {
    Holdings holdings;
    holdings.total = read_amounts(reader);
    holdings.free = read_amounts(reader);
    holdings.is_draining = reader.u8() != 0;
    holdings.held.resize(reader.count(20));
    for (auto& holding : holdings.held) {
      holding.owner = reader.string();
      holding.amounts = read_amounts(reader);
      holding.processors = read_numbers(reader);
    }
    return holdings;
  });
}

std::string encode(const HostLoad& message) {
  return ByteWriter()
      .u64(std::bit_cast<std::uint64_t>(message.load))
      .u64(message.memory_bytes)
      .u64(message.available_bytes)
      .bytes();
}

HostLoad decode_host_load(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) {
    HostLoad load;
    load.load = std::bit_cast<double>(reader.u64());
    load.memory_bytes = reader.u64();
    load.available_bytes = reader.u64();
    return load;
  });
}

std::string encode(const ListenOrder& message) {
  ByteWriter writer;
  write(writer.string(message.secret.bytes()), message.has);
  writer.u32(count_of(message.idle_time)).u32(count_of(message.keep_alive));
  return writer.bytes();
}

ListenOrder decode_listen_order(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) {
    ListenOrder order;
    order.secret = Secret::from_bytes(reader.string());
    order.has = read_amounts(reader);
    order.idle_time = read_milliseconds(reader);
    order.keep_alive = std::chrono::ceil<std::chrono::seconds>(read_milliseconds(reader));
    return order;
  });
}

std::string encode(const Listening& message) {
  return ByteWriter().string(message.address).string(message.error).bytes();
}

Listening decode_listening(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) {
    std::string address = reader.string();
    return Listening{std::move(address), reader.string()};
  });
}

}  // namespace kolo::exec
