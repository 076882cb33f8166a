// Memory shared by the ranks of one host.
//
// Each rank owns one segment: a memfd, so it has no name in any file system, needs no clean-up and
// is gone with the last process that maps it, however that process ends. It is sparse: as large as
// the machine's memory, while only touched pages exist. Peers map it whole, once, so an offset is
// an address everywhere.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/fd.h"

namespace kolo::comm {

/// One mapping of one segment in this process.
class Segment {
 public:
  /// A new segment of this process.
  static std::shared_ptr<Segment> create(std::size_t bytes);

  /// What peers need to attach: plain data for an allgather.
  struct Ticket {
    std::uint64_t version = 1;
    std::uint64_t nonce = 0;  ///< random; also the first word of the segment
    std::uint64_t bytes = 0;
    std::int32_t pid = 0;
    std::int32_t fd = -1;
  };
  [[nodiscard]] Ticket ticket() const;

  /// Maps the segment of a living process of this host. Ranks that are threads of one process share
  /// one mapping. Throws peer_lost if the process is gone, io, corruption.
  static std::shared_ptr<Segment> attach(const Ticket& ticket, const std::string& whose);

  /// Reads the segment of a living process of this host without a mapping: for what is read once,
  /// page faults and the end of the mapping would cost as much as the copy. Throws as attach()
  /// does.
  class Reader {
   public:
    Reader(const Ticket& ticket, const std::string& whose);
    /// From any thread. Throws io.
    void read(std::size_t offset, std::span<std::byte> into) const;

   private:
    Fd fd_;
    std::string whose_;
  };

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  /// The process whose segment this is.
  [[nodiscard]] pid_t owner() const noexcept { return owner_; }
  [[nodiscard]] std::byte* base() const noexcept { return base_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool contains(const void* address, std::size_t length) const noexcept {
    auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - base_);
    return static_cast<const std::byte*>(address) >= base_ && offset <= bytes_ &&
           length <= bytes_ - offset;
  }

  /// Makes pages exist, or throws unavailable (instead of a SIGBUS at first use).
  void populate(std::size_t offset, std::size_t length);
  /// Gives pages back; they read as zero afterwards.
  void discard(std::size_t offset, std::size_t length) noexcept;

 private:
  Segment(Fd fd, std::size_t bytes, std::uint64_t nonce, pid_t owner);

  Fd fd_;  // invalid in attached segments
  std::byte* base_ = nullptr;
  std::size_t bytes_;
  std::uint64_t nonce_;
  pid_t owner_;
};

}  // namespace kolo::comm
