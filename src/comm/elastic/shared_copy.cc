#include "comm/elastic/shared_copy.h"

#include <cstring>
#include <future>

#include "base/log.h"
#include "base/signals_blocked.h"
#include "kolo/error.h"

namespace kolo::comm::elastic {
namespace {

/// The segment begins with a page of its own.
constexpr std::size_t kOffset = 4096;
/// One core does not use all of the memory's speed. Less than this is not worth a thread.
constexpr std::size_t kTwoThreads = std::size_t{8} << 20;

}  // namespace

void SharedCopy::save(std::span<const std::byte> value) {
  if (segment_ == nullptr || segment_->bytes() < kOffset + value.size()) {
    segment_.reset();
    segment_ = Segment::create(kOffset + value.size());
    segment_->populate(0, segment_->bytes());
  }
  size_ = value.size();
  if (!value.empty()) std::memcpy(segment_->base() + kOffset, value.data(), value.size());
}

std::span<const std::byte> SharedCopy::bytes() const noexcept {
  if (segment_ == nullptr) return {};
  return {segment_->base() + kOffset, size_};
}

SharedCopy::Place SharedCopy::place() const { return {segment_->ticket(), kOffset, size_}; }

bool SharedCopy::try_read(const Place& place, std::span<std::byte> into) {
  if (place.bytes != into.size() || place.segment.bytes < place.offset + place.bytes) return false;
  try {
    const Segment::Reader reader(place.segment, "a rank that has the state");
    if (into.size() < kTwoThreads) {
      reader.read(place.offset, into);
      return true;
    }
    const std::size_t half = into.size() / 2;
    const SignalsBlocked blocked;  // they are for the program's own threads
    auto second = std::async(std::launch::async,
                             [&] { reader.read(place.offset + half, into.subspan(half)); });
    reader.read(place.offset, into.first(half));
    second.get();
    return true;
  } catch (const Error& error) {
    log::debug("{}", error.message());
    return false;
  }
}

}  // namespace kolo::comm::elastic
