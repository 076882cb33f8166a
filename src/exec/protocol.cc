#include "exec/protocol.h"

#include <algorithm>
#include <bit>

#include "base/errors.h"

namespace kolo::exec {
namespace {

using std::chrono::milliseconds;

/// Reads one message and insists that nothing is left.
template <class Read>
auto decode_whole(std::string_view payload, Read&& read) {
  ByteReader reader(payload);
  auto message = read(reader);
  reader.finish();
  return message;
}

milliseconds read_milliseconds(ByteReader& reader) { return milliseconds(reader.u32()); }
std::uint32_t count_of(milliseconds duration) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(duration.count(), 0, UINT32_MAX));
}

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

void write(ByteWriter& writer, const std::vector<int>& numbers) {
  writer.u32(static_cast<std::uint32_t>(numbers.size()));
  for (const int number : numbers) writer.i32(number);
}

std::vector<int> read_numbers(ByteReader& reader) {
  std::vector<int> numbers(reader.count(4));
  for (int& number : numbers) number = reader.i32();
  return numbers;
}

}  // namespace

std::string encode(const Hello& message) {
  ByteWriter writer;
  writer.string(message.host).string(message.from).i32(message.processors);
  return writer.bytes();
}

Hello decode_hello(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) {
    Hello hello;
    hello.host = reader.string();
    hello.from = reader.string();
    hello.processors = reader.i32();
    return hello;
  });
}

std::string encode(const Claim& message) {
  ByteWriter writer;
  writer.string(message.owner).u32(count_of(message.lease));
  return writer.bytes();
}

Claim decode_claim(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) {
    Claim claim;
    claim.owner = reader.string();
    claim.lease = read_milliseconds(reader);
    return claim;
  });
}

std::string encode(const Task& task) {
  ByteWriter writer;
  writer.u64(task.id).strings(task.argv).strings(task.environment).string(task.directory.string());
  writer.u8(task.streams.to_owner ? 1 : 0);
  writer.string(task.streams.out.string()).string(task.streams.err.string());
  writer.u32(static_cast<std::uint32_t>(task.descriptors.size()));
  for (const auto& passed : task.descriptors) writer.string(passed.variable);
  writer.string(task.secret);
  write(writer, task.cpus);
  writer.i32(task.share.index).i32(task.share.count);
  writer.u8(static_cast<std::uint8_t>(task.share.bind_to));
  for (const auto grace : {task.grace.end, task.grace.left_behind, task.grace.owner_lost})
    writer.u32(count_of(grace));
  writer.u8(task.tell_exit ? 1 : 0).u64(task.reservation);
  return writer.bytes();
}

Task decode_task(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) {
    Task task;
    task.id = reader.u64();
    task.argv = reader.strings();
    if (task.argv.empty()) throw_error(ErrorCode::corruption, "a task names no program");
    task.environment = reader.strings();
    task.directory = reader.string();
    task.streams.to_owner = reader.u8() != 0;
    task.streams.out = reader.string();
    task.streams.err = reader.string();
    task.descriptors.resize(reader.count(4));
    for (auto& passed : task.descriptors) passed.variable = reader.string();
    task.secret = reader.string();
    task.cpus = read_numbers(reader);
    task.share.index = reader.i32();
    task.share.count = reader.i32();
    const auto bind_to = reader.u8();
    if (bind_to > static_cast<std::uint8_t>(BindTo::socket))
      throw_error(ErrorCode::corruption, "a task is bound to something unknown ({})", bind_to);
    task.share.bind_to = static_cast<BindTo>(bind_to);
    task.grace.end = read_milliseconds(reader);
    task.grace.left_behind = read_milliseconds(reader);
    task.grace.owner_lost = read_milliseconds(reader);
    task.tell_exit = reader.u8() != 0;
    task.reservation = reader.u64();
    return task;
  });
}

std::string encode(const Output& message) {
  ByteWriter writer;
  writer.u64(message.id).u8(static_cast<std::uint8_t>(message.stream)).string(message.bytes);
  return writer.bytes();
}

Output decode_output(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) {
    Output output;
    output.id = reader.u64();
    output.stream =
        reader.u8() == static_cast<std::uint8_t>(Stream::err) ? Stream::err : Stream::out;
    output.bytes = reader.string();
    return output;
  });
}

std::string encode(const Exited& message) {
  return ByteWriter().u64(message.id).i32(message.status).bytes();
}

Exited decode_exited(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) {
    const TaskId id = reader.u64();
    return Exited{id, reader.i32()};
  });
}

std::string encode(const TaskEnd& message) {
  ByteWriter writer;
  writer.u64(message.id).i32(message.status).string(message.tail).string(message.error);
  return writer.bytes();
}

TaskEnd decode_task_end(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) {
    TaskEnd end;
    end.id = reader.u64();
    end.status = reader.i32();
    end.tail = reader.string();
    end.error = reader.string();
    return end;
  });
}

std::string encode(const std::vector<std::string>& environment) {
  return ByteWriter().strings(environment).bytes();
}

std::vector<std::string> decode_environment(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) { return reader.strings(); });
}

std::string encode(TaskId task) { return ByteWriter().u64(task).bytes(); }

TaskId decode_task_id(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) { return reader.u64(); });
}

std::string encode(milliseconds lease) {
  ByteWriter writer;
  writer.u32(count_of(lease));
  return writer.bytes();
}

milliseconds decode_lease(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) { return read_milliseconds(reader); });
}

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
