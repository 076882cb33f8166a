// What a commit remembers of a large value, in memory that other processes of this host can read:
// a rank that joins copies it from there at the speed of memory, without a hand of its owner.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "comm/shm/segment.h"

namespace kolo::comm::elastic {

class SharedCopy {
 public:
  void save(std::span<const std::byte> value);
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;

  /// Where others of this host find it: plain data.
  struct Place {
    Segment::Ticket segment;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  /// Of a copy that is there.
  [[nodiscard]] Place place() const;
  /// Copies what is there at another process of this host. `into` has as many bytes. False if that
  /// process is gone or its memory cannot be read from here.
  static bool try_read(const Place& place, std::span<std::byte> into);

 private:
  std::shared_ptr<Segment> segment_;  // null: empty
  std::size_t size_ = 0;
};

}  // namespace kolo::comm::elastic
