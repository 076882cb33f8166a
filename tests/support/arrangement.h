// The transports and layouts of hosts that the conformance tests run over.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace kolo::test {

struct Arrangement {
  std::string name;
  std::string transport;          ///< as asked for
  std::vector<int> host_of_rank;  ///< several hosts are pretended; the wire is loopback
  std::string expected;           ///< what Communicator::transport() must say

  [[nodiscard]] int size() const { return static_cast<int>(host_of_rank.size()); }
};

/// Every transport; sizes 1 to 8; equal, unequal and interleaved hosts. Fewer under TSan.
std::vector<Arrangement> all_arrangements();
/// One or two of each transport, for tests that are long.
std::vector<Arrangement> some_arrangements();

/// Whether this machine can run it; why not, otherwise.
bool is_available(const Arrangement& arrangement, std::string* why);

/// For the names of gtest.
std::string name_of(const Arrangement& arrangement);
std::ostream& operator<<(std::ostream& out, const Arrangement& arrangement);

}  // namespace kolo::test
