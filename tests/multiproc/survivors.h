// What tests with forked ranks share: operations to be in the middle of, and what survivors say.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "kolo/communicator.h"
#include "support/process_ranks.h"

namespace kolo::test {

/// An operation that can be repeated for ever; named for the tests.
struct Operation {
  std::string name;
  std::function<void(Communicator&)> call;
};
/// Every operation, small and large, on own and on foreign memory.
const std::vector<Operation>& every_operation();
std::string name_of(const Operation& operation);
std::ostream& operator<<(std::ostream& out, const Operation& operation);

/// Whether ranks on different hosts can talk here; prepares the wire to use loopback.
bool wire_is_available(std::string* why);

/// Calls `body`, which must throw peer_lost. Returns "peer_lost of RANK at NANOSECONDS (why)", or
/// another text that says what happened instead.
std::string lost_in(const std::function<void()>& body);

/// Repeats `call` until it throws; as lost_in().
std::string repeat_until_lost(const std::function<void()>& call);

/// The rank that an outcome says was lost, or -1.
int lost_rank(const Outcome& outcome);

/// Expects that an outcome says that `rank` was lost, no later than `limit` after `since_ns`.
/// Prints how long it took.
void expect_lost(const Outcome& outcome, int rank, std::int64_t since_ns,
                 std::chrono::milliseconds limit);

/// How late peer_lost may come in a test: kolo promises one second on a machine that is not
/// overloaded.
inline constexpr std::chrono::milliseconds kPatience{kSanitized ? 20'000 : 5'000};

}  // namespace kolo::test
