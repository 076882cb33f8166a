// One rank of wire_mpi_test: checks operations over the transport that the environment asks for.
#include <cstdio>
#include <numeric>
#include <vector>

#include "kolo/kolo.h"
#include "support/random_operations.h"

namespace {

constexpr int kRandomOperations = 1000;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "rank %d: %s\n", kolo::rank(), what);
  std::exit(1);
}

void check_all() {
  kolo::Communicator& world = kolo::world();
  const int n = world.size();
  for (std::size_t count : {1UL, 1000UL, 300'001UL}) {
    std::vector<float> data(count, static_cast<float>(world.rank() + 1));
    world.allreduce(std::span(data), kolo::ReduceOp::sum);
    const auto sum = static_cast<float>(n * (n + 1) / 2);
    expect(data.front() == sum && data.back() == sum, "wrong sum");
  }
  std::vector<int> mine(static_cast<std::size_t>(world.rank()) * 50'000, world.rank());
  const std::vector<int> all = world.allgather(std::span<const int>(mine));
  expect(all.size() == static_cast<std::size_t>(n * (n - 1) / 2) * 50'000 && all.back() == n - 1,
         "wrong allgather");
  std::vector<double> data(200'000, world.rank() == 1 ? 4.5 : 0.0);
  world.broadcast(std::span(data), 1);
  expect(data.back() == 4.5, "wrong broadcast");
  const int right = (world.rank() + 1) % n, left = (world.rank() + n - 1) % n;
  int token = world.rank();
  world.send(&token, 1, kolo::DataType::int32, right);
  world.recv(&token, 1, kolo::DataType::int32, left);
  expect(token == left, "wrong message");
  std::vector<int> reversed(static_cast<std::size_t>(n));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  auto group = world.subset(reversed);
  expect(group->rank() == n - 1 - world.rank(), "wrong subset");
  expect(group->allreduce(2, kolo::ReduceOp::sum) == 2 * n, "wrong sum in the subset");

  // Every kind, type and size; what is received alike must be alike.
  const auto hash =
      static_cast<std::int64_t>(kolo::test::run_random_operations(world, 42, kRandomOperations));
  for (const std::int64_t other : world.allgather(std::span(&hash, 1)))
    expect(other == hash, "ranks disagree");
}

}  // namespace

int main() {
  for (int round = 0; round < 2; ++round) {  // and once more after leaving
    kolo::init();
    check_all();
    if (round == 1 && kolo::rank() == 0)
      std::printf("%d ranks over %s\n", kolo::size(), kolo::world().transport().c_str());
    kolo::shutdown();
  }
  return 0;
}
