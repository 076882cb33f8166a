// How many bytes of C++ objects a test has: a program with counted_heap.cc counts them.
#pragma once

namespace kolo::test {

/// Bytes that `new` has given and `delete` has not taken back, with what malloc adds to each piece.
/// Libraries in C, as SQLite, are not counted.
long heap_bytes() noexcept;

}  // namespace kolo::test
