// Fields are written in the order in which they are declared; numbers are little-endian, texts and
// lists have their length in front (base/frames.h). A reader throws corruption when a message ends
// too early or has bytes left over.
#include "engine/messages.h"

#include <bit>

namespace kolo::runtime {
namespace {

// What each takes when its texts and lists are empty.
constexpr std::size_t kTensorBytes = 5;
constexpr std::size_t kRequestBytes = 30;
constexpr std::size_t kDecisionBytes = 18;

void write(ByteWriter& writer, const Request& request) {
  writer.string(request.name)
      .u8(static_cast<std::uint8_t>(request.kind))
      .u8(static_cast<std::uint8_t>(request.op))
      .i32(request.root)
      .u64(std::bit_cast<std::uint64_t>(request.scaling.prescale))
      .u64(std::bit_cast<std::uint64_t>(request.scaling.postscale))
      .u32(static_cast<std::uint32_t>(request.tensors.size()));
  for (const auto& tensor : request.tensors) {
    writer.u8(static_cast<std::uint8_t>(tensor.type))
        .u32(static_cast<std::uint32_t>(tensor.shape.size()));
    for (const auto size : tensor.shape) writer.u64(static_cast<std::uint64_t>(size));
  }
}

Request read_request(ByteReader& reader) {
  Request request;
  request.name = reader.string();
  request.kind = static_cast<OpKind>(reader.u8());
  request.op = static_cast<ReduceOp>(reader.u8());
  request.root = reader.i32();
  request.scaling.prescale = std::bit_cast<double>(reader.u64());
  request.scaling.postscale = std::bit_cast<double>(reader.u64());
  request.tensors.resize(reader.count(kTensorBytes));
  for (auto& tensor : request.tensors) {
    tensor.type = static_cast<DataType>(reader.u8());
    tensor.shape.resize(reader.count(sizeof(std::uint64_t)));
    for (auto& size : tensor.shape) size = static_cast<std::int64_t>(reader.u64());
  }
  return request;
}

void write_requests(ByteWriter& writer, const std::vector<Request>& requests) {
  writer.u32(static_cast<std::uint32_t>(requests.size()));
  for (const auto& request : requests) write(writer, request);
}

std::vector<Request> read_requests(ByteReader& reader) {
  std::vector<Request> requests(reader.count(kRequestBytes));
  for (auto& request : requests) request = read_request(reader);
  return requests;
}

std::string frame(MessageType type, const ByteWriter& writer) {
  return encode_frame(static_cast<std::uint8_t>(type), writer.bytes());
}

}  // namespace

std::size_t encoded_bytes(const Request& request) {
  std::size_t bytes = kRequestBytes + request.name.size();
  for (const auto& tensor : request.tensors)
    bytes += kTensorBytes + tensor.shape.size() * sizeof(std::uint64_t);
  return bytes;
}

std::size_t encoded_bytes(const Decision& decision) {
  std::size_t bytes = kDecisionBytes + decision.text.size() + decision.absent.size() * sizeof(int);
  for (const Request& request : decision.requests) bytes += encoded_bytes(request);
  return bytes;
}

std::string encode_submit(const std::vector<Request>& requests) {
  ByteWriter writer;
  write_requests(writer, requests);
  return frame(MessageType::submit, writer);
}

std::vector<Request> decode_submit(std::string_view payload) {
  ByteReader reader(payload);
  auto requests = read_requests(reader);
  reader.finish();
  return requests;
}

std::string encode_decisions(const std::vector<Decision>& decisions) {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(decisions.size()));
  for (const auto& decision : decisions) {
    writer.u8(static_cast<std::uint8_t>(decision.kind))
        .u8(static_cast<std::uint8_t>(decision.code))
        .i32(decision.rank)
        .string(decision.text)
        .u32(static_cast<std::uint32_t>(decision.absent.size()));
    for (const int member : decision.absent) writer.i32(member);
    write_requests(writer, decision.requests);
  }
  return frame(MessageType::decide, writer);
}

std::vector<Decision> decode_decisions(std::string_view payload) {
  ByteReader reader(payload);
  std::vector<Decision> decisions(reader.count(kDecisionBytes));
  for (auto& decision : decisions) {
    decision.kind = static_cast<Decision::Kind>(reader.u8());
    decision.code = static_cast<ErrorCode>(reader.u8());
    decision.rank = reader.i32();
    decision.text = reader.string();
    decision.absent.resize(reader.count(4));
    for (int& member : decision.absent) member = reader.i32();
    decision.requests = read_requests(reader);
  }
  reader.finish();
  return decisions;
}

std::string encode_lost(const Lost& lost) {
  return frame(MessageType::lost, ByteWriter().i32(lost.member).string(lost.reason));
}

Lost decode_lost(std::string_view payload) {
  ByteReader reader(payload);
  Lost lost;
  lost.member = reader.i32();
  lost.reason = reader.string();
  reader.finish();
  return lost;
}

std::string encode_join() { return frame(MessageType::join, {}); }
std::string encode_join_noted() { return frame(MessageType::join_noted, {}); }

std::string encode_trace(std::string_view lines) {
  return encode_frame(static_cast<std::uint8_t>(MessageType::trace), lines);
}

}  // namespace kolo::runtime
