// The bytes of a checkpoint file.
//
//   magic "kolockpt"   u32 version   u64 step   u8 has metric   f64 metric
//   u32 number of parts, each: name, u64 size, u32 CRC-32C of its bytes
//   u32 CRC-32C of all the above
//   the parts' bytes, in order
//
// Numbers are little-endian; names are u32 length and bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace kolo::train {

struct CheckpointContent {
  std::uint64_t step = 0;
  std::optional<double> metric;
  std::map<std::string, std::string> parts;  ///< kolo::CheckpointParts
};

std::string encode_checkpoint(const CheckpointContent& content);

/// Throws corruption, naming `origin`; unsupported for a newer version.
CheckpointContent decode_checkpoint(std::string_view bytes, std::string_view origin);

/// Step and metric alone, from the file's first bytes. nullopt if they are not there.
struct CheckpointHead {
  std::uint64_t step = 0;
  std::optional<double> metric;
};
inline constexpr std::size_t kHeadBytes = 8 + 4 + 8 + 1 + 8;
std::optional<CheckpointHead> decode_head(std::string_view bytes);

}  // namespace kolo::train
