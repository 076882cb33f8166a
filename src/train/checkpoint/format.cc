// The head has a fixed size up to the number of parts, so that step and metric can be read without
// the rest of the file. The checksum of the table of parts is verified before their sizes are
// trusted.
#include "train/checkpoint/format.h"

#include <bit>

#include "base/errors.h"
#include "base/frames.h"
#include "events/crc32c.h"

namespace kolo::train {
namespace {

constexpr std::string_view kMagic = "kolockpt";
constexpr std::uint32_t kVersion = 1;

struct PartEntry {
  std::string name;
  std::uint64_t size;
  std::uint32_t checksum;
};

}  // namespace

std::string encode_checkpoint(const CheckpointContent& content) {
  ByteWriter head;
  head.raw(kMagic).u32(kVersion).u64(content.step);
  head.u8(content.metric ? 1 : 0).u64(std::bit_cast<std::uint64_t>(content.metric.value_or(0)));
  head.u32(static_cast<std::uint32_t>(content.parts.size()));
  std::size_t total = 0;
  for (const auto& [name, bytes] : content.parts) {
    head.string(name).u64(bytes.size()).u32(events::crc32c(bytes));
    total += bytes.size();
  }
  const std::uint32_t checksum = events::crc32c(head.bytes());
  head.u32(checksum);
  std::string file = head.bytes();
  file.reserve(file.size() + total);
  for (const auto& [name, bytes] : content.parts) file += bytes;
  return file;
}

std::optional<CheckpointHead> decode_head(std::string_view bytes) {
  if (bytes.size() < kHeadBytes || !bytes.starts_with(kMagic)) return std::nullopt;
  ByteReader reader(bytes.substr(kMagic.size()));
  if (reader.u32() != kVersion) return std::nullopt;
  CheckpointHead head;
  head.step = reader.u64();
  const bool has_metric = reader.u8() != 0;
  const auto metric = std::bit_cast<double>(reader.u64());
  if (has_metric) head.metric = metric;
  return head;
}

CheckpointContent decode_checkpoint(std::string_view bytes, std::string_view origin) {
  if (!bytes.starts_with(kMagic))
    throw_error(ErrorCode::corruption, "{}: not a checkpoint of kolo", origin);
  try {
    ByteReader reader(bytes);
    reader.raw(kMagic.size());
    if (const std::uint32_t version = reader.u32(); version != kVersion)
      throw_error(ErrorCode::unsupported,
                  "{}: the checkpoint has version {}, but this kolo reads version {}", origin,
                  version, kVersion);
    CheckpointContent content;
    content.step = reader.u64();
    const bool has_metric = reader.u8() != 0;
    const auto metric = std::bit_cast<double>(reader.u64());
    if (has_metric) content.metric = metric;
    std::vector<PartEntry> entries;
    std::size_t head_size = kHeadBytes + 4;
    const std::uint32_t parts = reader.count(4 + 8 + 4);
    for (std::uint32_t i = 0; i < parts; ++i) {
      PartEntry entry{reader.string(), 0, 0};
      entry.size = reader.u64();
      entry.checksum = reader.u32();
      head_size += 4 + entry.name.size() + 8 + 4;
      entries.push_back(std::move(entry));
    }
    if (reader.u32() != events::crc32c(bytes.substr(0, head_size)))
      throw_error(ErrorCode::corruption,
                  "{}: damaged: its table of parts does not match its checksum", origin);
    for (const PartEntry& entry : entries) {
      const std::string_view part = reader.raw(entry.size);
      if (events::crc32c(part) != entry.checksum)
        throw_error(ErrorCode::corruption, "{}: damaged: part '{}' does not match its checksum",
                    origin, entry.name);
      content.parts[entry.name] = part;
    }
    reader.finish();
    return content;
  } catch (const Error& error) {
    if (error.message().starts_with(origin)) throw;
    throw_error(ErrorCode::corruption, "{}: damaged: {}", origin, error.message());
  }
}

}  // namespace kolo::train
