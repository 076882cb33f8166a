// The start of every collective operation: arguments are checked, and all ranks meet.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <utility>

#include "comm/activity.h"
#include "comm/card.h"
#include "comm/group.h"
#include "kolo/error.h"

namespace kolo::comm {

inline std::uint64_t address(const void* memory) { return reinterpret_cast<std::uint64_t>(memory); }

/// Throws on all ranks unless all agreed.
inline const Exchanged& check_agreed(const Exchanged& all, const Group& group) {
  if (!all.agreed()) [[unlikely]]
    throw mismatch(all, group.size());
  return all;
}

/// The meeting at the start of every operation: all agree, or all throw.
inline Exchanged meet(Group& group, const Card& card, const void* payload, std::size_t bytes) {
  activity.note_operation();
  return check_agreed(group.exchange(card, payload, bytes), group);
}

/// Ends a call whose arguments are wrong on this rank alone; the others get an error too.
template <class... Args>
[[noreturn]] void refuse(Group& group, OpKind kind, fmt::format_string<Args...> format,
                         Args&&... args) {
  group.exchange(refusal(kind), nullptr, 0);
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: ", to_string(kind)) +
                                               fmt::format(format, std::forward<Args>(args)...));
}

/// What the caller's allocator returns for a result of so many elements.
template <class Allocate>
void* room_of(OpKind kind, std::size_t elements, Allocate allocate) {
  void* const room = allocate();
  if (room == nullptr && elements != 0) [[unlikely]]
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: the allocator returned null for a result of {} elements; let it "
                            "return memory for them, or throw",
                            to_string(kind), elements));
  return room;
}

/// Calls the caller's allocator between two meetings of an operation. If it throws, the others hear
/// of it at the second one.
template <class Allocate>
void* make_room(Group& group, OpKind kind, std::size_t elements, Allocate allocate) {
  try {
    return room_of(kind, elements, allocate);
  } catch (...) {
    group.exchange(refusal(kind, Refusal::no_room), nullptr, 0);
    throw;
  }
}

/// More elements than any machine holds. Below it, neither bytes nor sums over all ranks wrap.
inline constexpr std::size_t kMostElements = std::size_t{1} << 46;

inline void check_memory(Group& group, OpKind kind, const void* memory, std::size_t count,
                         const char* name) {
  if (count > kMostElements) [[unlikely]]
    refuse(group, kind, "{} elements are more than any machine holds", count);
  if (memory == nullptr && count != 0) [[unlikely]]
    refuse(group, kind, "{} is null", name);
}

/// The elements of so many rows.
inline std::size_t elements_of(Group& group, OpKind kind, std::size_t rows, std::size_t row_size) {
  std::size_t count = 0;
  if (rows > kMostElements || __builtin_mul_overflow(rows, row_size, &count)) [[unlikely]]
    refuse(group, kind, "{} rows of {} elements are more than any machine holds", rows, row_size);
  return count;
}

/// What the splits add up to, which is not more than the rows that there are.
inline std::size_t sum_of_splits(Group& group, OpKind kind, std::span<const std::size_t> splits,
                                 std::size_t rows) {
  std::size_t sum = 0;
  for (const std::size_t split : splits) {
    if (split > rows - sum) [[unlikely]]
      refuse(group, kind, "splits add up to more than the {} rows that there are", rows);
    sum += split;
  }
  return sum;
}

/// Values outside the enumerations can come from a binding.
inline bool is_known(DataType type) { return static_cast<int>(type) < kDataTypeCount; }

inline void check_type(Group& group, OpKind kind, DataType type) {
  if (!is_known(type)) [[unlikely]]
    refuse(group, kind, "{} is not a data type", static_cast<int>(type));
}

inline void check_root(Group& group, OpKind kind, int root) {
  if (root < 0 || root >= group.size())
    refuse(group, kind, "root {} is not in 0…{}", root, group.size() - 1);
}

}  // namespace kolo::comm
