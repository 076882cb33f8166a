// What the conformance tests share: a job of thread ranks for each arrangement, and the places
// where data may lie.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "kolo/error.h"
#include "support/arrangement.h"
#include "support/oracle.h"
#include "support/thread_ranks.h"
#include "support/values.h"

namespace kolo::test {

/// A test that runs over arrangements.
class Conformance : public testing::TestWithParam<Arrangement> {
 protected:
  void SetUp() override {
    std::string why;
    if (!is_available(GetParam(), &why)) GTEST_SKIP() << why;
    ThreadRanksOptions options;
    options.host_of_rank = GetParam().host_of_rank;
    options.transport = GetParam().transport;
    ranks_.emplace(options);
  }

  [[nodiscard]] int size() const { return GetParam().size(); }
  void run(const std::function<void(Communicator&)>& body) { ranks_->run(body); }

  /// One array for each rank.
  [[nodiscard]] std::vector<Bytes> make_inputs(DataType type, std::size_t count, std::uint64_t seed,
                                               Range range) const {
    std::vector<Bytes> inputs;
    for (int r = 0; r < size(); ++r)
      inputs.push_back(
          make_values(type, count, seed * 1009 + static_cast<std::uint64_t>(r), range));
    return inputs;
  }

 private:
  std::optional<ThreadRanks> ranks_;
};

/// Where a rank's data lies.
enum class Where {
  foreign,    ///< ordinary memory
  own,        ///< a Buffer of the communicator
  inside,     ///< somewhere inside such a Buffer
  unaligned,  ///< ordinary memory at an odd address
};

/// Memory of one rank for one operation.
class Place {
 public:
  Place(Communicator& comm, Where where, std::size_t bytes) : size_(bytes) {
    constexpr std::size_t kInside = 72;
    switch (where) {
      case Where::own:
      case Where::inside: {
        const std::size_t offset = where == Where::inside ? kInside : 0;
        buffer_ = comm.allocate<std::byte>(bytes + offset);
        data_ = buffer_.data() + (buffer_.data() == nullptr ? 0 : offset);
        break;
      }
      case Where::foreign:
      case Where::unaligned:
        memory_ = std::make_unique<std::byte[]>(bytes + 1);
        data_ = memory_.get() + (where == Where::unaligned ? 1 : 0);
        break;
    }
  }
  Place(Communicator& comm, Where where, const Bytes& contents)
      : Place(comm, where, contents.size()) {
    std::copy(contents.begin(), contents.end(), data_);
  }

  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] Bytes bytes() const { return {data_, data_ + size_}; }

 private:
  Buffer<std::byte> buffer_;
  std::unique_ptr<std::byte[]> memory_;
  std::byte* data_ = nullptr;
  std::size_t size_;
};

/// A way of laying out input and output over the ranks.
struct Layout {
  const char* name;
  Where even, odd;  ///< for even and odd ranks
  bool in_place;
};
inline constexpr Layout kLayouts[] = {
    {"foreign", Where::foreign, Where::foreign, false},
    {"foreign in place", Where::foreign, Where::foreign, true},
    {"own in place", Where::own, Where::own, true},
    {"own", Where::own, Where::own, false},
    {"inside own in place", Where::inside, Where::inside, true},
    {"own and foreign in place", Where::own, Where::foreign, true},
    {"foreign and own", Where::foreign, Where::inside, false},
    {"unaligned", Where::unaligned, Where::unaligned, false},
    {"unaligned and own in place", Where::unaligned, Where::own, true},
};

/// Runs an operation on data laid out so, and returns what came out on this rank. `operation`
/// takes input and output, which may be the same.
template <class Operation>
Bytes apply(Communicator& comm, const Layout& layout, const Bytes& input, std::size_t output_bytes,
            Operation&& operation) {
  const Where where = comm.rank() % 2 == 0 ? layout.even : layout.odd;
  Place in(comm, where, input);
  if (layout.in_place && output_bytes == input.size()) {
    operation(in.data(), in.data());
    return in.bytes();
  }
  Place out(comm, where, output_bytes);
  operation(in.data(), out.data());
  EXPECT_EQ(in.bytes(), input) << "the input was changed";
  return out.bytes();
}

/// Calls `body` and expects a kolo::Error; returns it (or an empty one, with a test failure).
template <class Body>
Error expect_error(ErrorCode code, Body&& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e;
  }
  ADD_FAILURE() << "expected " << to_string(code) << ", nothing was thrown";
  return {ErrorCode::internal, ""};
}

#define KOLO_CONFORMANCE(Suite, arrangements)                            \
  INSTANTIATE_TEST_SUITE_P(Over, Suite, testing::ValuesIn(arrangements), \
                           [](const auto& info) { return name_of(info.param); })

}  // namespace kolo::test
