// Point to point through shared memory: a byte ring per ordered pair, in the sender's seat.
// A message is its size, its header (padded to 32 bytes) and its data.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/errors.h"
#include "comm/shm/shm_group.h"

namespace kolo::comm {
namespace {

constexpr std::size_t kHeaderBytes = 32;

/// Pieces after which the other side is told, so that both sides of a long message work at once.
constexpr std::size_t kPiece = kChannelBytes / 4;

struct Prefix {
  std::uint64_t bytes = 0;
  std::array<std::byte, kHeaderBytes> header{};
};

}  // namespace

void ShmGroup::write_channel(int to, const void* data, std::size_t bytes) {
  Channel& channel = mine().channel(to);
  const auto* from = static_cast<const std::byte*>(data);
  std::uint64_t written = channel.written.value.load(std::memory_order_relaxed);
  while (bytes > 0) {
    const std::size_t place = written % kChannelBytes;
    const std::size_t length = std::min({bytes, kPiece, kChannelBytes - place});
    if (written + length > kChannelBytes)
      wait_signal(channel.taken, written + length - kChannelBytes, to);
    std::memcpy(channel.ring + place, from, length);
    written += length;
    from += length;
    bytes -= length;
    Waiter::publish(channel.written.value, written, channel.written.sleepers);
  }
}

void ShmGroup::read_channel(int from, void* data, std::size_t bytes) {
  Channel& channel = seat(from).channel(rank());
  auto* to = static_cast<std::byte*>(data);
  std::uint64_t taken = channel.taken.value.load(std::memory_order_relaxed);
  while (bytes > 0) {
    wait_signal(channel.written, taken + 1, from);
    const std::size_t place = taken % kChannelBytes;
    const std::size_t available = channel.written.value.load(std::memory_order_acquire) - taken;
    const std::size_t length = std::min({bytes, available, kChannelBytes - place});
    if (to != nullptr) {
      std::memcpy(to, channel.ring + place, length);
      to += length;
    }
    taken += length;
    bytes -= length;
    Waiter::publish(channel.taken.value, taken, channel.taken.sleepers);
  }
}

void ShmGroup::send(int to, std::span<const std::byte> header, const void* data,
                    std::size_t bytes) {
  check_usable();
  KOLO_CHECK(header.size() <= kHeaderBytes);
  Prefix prefix;
  prefix.bytes = bytes;
  std::copy(header.begin(), header.end(), prefix.header.begin());
  write_channel(to, &prefix, sizeof prefix);
  write_channel(to, data, bytes);
}

std::size_t ShmGroup::recv_header(int from, std::span<std::byte> header) {
  check_usable();
  KOLO_CHECK(header.size() <= kHeaderBytes);
  Prefix prefix;
  read_channel(from, &prefix, sizeof prefix);
  std::copy_n(prefix.header.begin(), header.size(), header.begin());
  return prefix.bytes;
}

void ShmGroup::recv_body(int from, void* data, std::size_t bytes) {
  check_usable();
  read_channel(from, data, bytes);
}

}  // namespace kolo::comm
