// Ten thousand random operations from a seed: all ranks agree, and a second run agrees with the
// first.
#include "conformance/conformance.h"
#include "support/random_operations.h"

namespace kolo::test {
namespace {

class RandomOperations : public Conformance {};

TEST_P(RandomOperations, AllRanksAgree) {
  const int count = scaled(10'000);
  std::vector<std::uint64_t> first(size()), second(size());
  run([&](Communicator& comm) { first[comm.rank()] = run_random_operations(comm, 42, count); });
  for (std::uint64_t hash : first) EXPECT_EQ(hash, first[0]);
  run([&](Communicator& comm) {
    second[comm.rank()] = run_random_operations(comm, 42, count / 10);
    EXPECT_EQ(second[comm.rank()], run_random_operations(comm, 42, count / 10));
    EXPECT_NE(second[comm.rank()], run_random_operations(comm, 43, count / 10));
  });
}

KOLO_CONFORMANCE(RandomOperations, some_arrangements());

}  // namespace
}  // namespace kolo::test
