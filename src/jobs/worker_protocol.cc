#include "jobs/worker_protocol.h"

namespace kolo::jobs {
namespace {

void put(ByteWriter& out, const std::vector<std::string>& texts) {
  out.u32(static_cast<std::uint32_t>(texts.size()));
  for (const auto& text : texts) out.string(text);
}

std::vector<std::string> get_texts(ByteReader& in) {
  std::vector<std::string> texts(in.count(4));
  for (auto& text : texts) text = in.string();
  return texts;
}

}  // namespace

std::string encode(const WorkerHello& message) {
  ByteWriter out;
  return out.string(message.host).i32(message.processors).bytes();
}

WorkerHello decode_hello(std::string_view payload) {
  ByteReader in(payload);
  WorkerHello message;
  message.host = in.string();
  message.processors = in.i32();
  in.finish();
  return message;
}

std::string encode(const StartTask& message) {
  ByteWriter out;
  out.u64(message.task);
  put(out, message.argv);
  put(out, message.environment);
  out.string(message.directory).string(message.output).u32(message.grace_ms);
  out.u32(static_cast<std::uint32_t>(message.cores.size()));
  for (const int core : message.cores) out.i32(core);
  return out.bytes();
}

StartTask decode_start(std::string_view payload) {
  ByteReader in(payload);
  StartTask message;
  message.task = in.u64();
  message.argv = get_texts(in);
  message.environment = get_texts(in);
  message.directory = in.string();
  message.output = in.string();
  message.grace_ms = in.u32();
  message.cores.resize(in.count(4));
  for (int& core : message.cores) core = in.i32();
  in.finish();
  return message;
}

std::string encode(const TaskEnd& message) {
  ByteWriter out;
  return out.u64(message.task).i32(message.status).string(message.tail).bytes();
}

TaskEnd decode_end(std::string_view payload) {
  ByteReader in(payload);
  TaskEnd message;
  message.task = in.u64();
  message.status = in.i32();
  message.tail = in.string();
  in.finish();
  return message;
}

std::string encode(const TaskFailure& message) {
  ByteWriter out;
  return out.u64(message.task).string(message.why).bytes();
}

TaskFailure decode_failure(std::string_view payload) {
  ByteReader in(payload);
  TaskFailure message;
  message.task = in.u64();
  message.why = in.string();
  in.finish();
  return message;
}

std::string encode(const std::vector<std::string>& environment) {
  ByteWriter out;
  put(out, environment);
  return out.bytes();
}

std::vector<std::string> decode_environment(std::string_view payload) {
  ByteReader in(payload);
  auto environment = get_texts(in);
  in.finish();
  return environment;
}

std::string encode_task(std::uint64_t task) {
  ByteWriter out;
  return out.u64(task).bytes();
}

std::uint64_t decode_task(std::string_view payload) {
  ByteReader in(payload);
  const std::uint64_t task = in.u64();
  in.finish();
  return task;
}

}  // namespace kolo::jobs
