#include "exec/protocol.h"

#include "base/errors.h"
#include "exec/protocol_bytes.h"

namespace kolo::exec {

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

std::string encode(std::chrono::milliseconds lease) {
  ByteWriter writer;
  writer.u32(count_of(lease));
  return writer.bytes();
}

std::chrono::milliseconds decode_lease(std::string_view payload) {
  return decode_whole(payload, [](ByteReader& reader) { return read_milliseconds(reader); });
}

}  // namespace kolo::exec
