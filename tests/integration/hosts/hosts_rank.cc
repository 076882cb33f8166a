// A rank for the tests between hosts.
//
//   hosts_rank check DIRECTORY   checks several collectives, says so in DIRECTORY/rank-N.result
//   hosts_rank loop DIRECTORY    sums until it fails, and writes what it saw to
//   DIRECTORY/rank-N.result:
//                                CODE LOST-RANK NANOSECONDS-SINCE-EPOCH; DIRECTORY/rank-N.pid
//                                appears when the loop runs
#include <kolo/kolo.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/// Appears complete or not at all: the test waits for it.
void publish(const std::string& path, const std::string& text) {
  const std::string draft = path + ".draft";
  std::ofstream(draft) << text << '\n';
  std::filesystem::rename(draft, path);
}

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("wrong result: " + what);
}

void check_allreduce(kolo::Communicator& world, std::size_t count) {
  const int n = world.size();
  std::vector<float> foreign(count);
  auto own = world.allocate<float>(count);
  for (std::size_t i = 0; i < count; ++i) {
    foreign[i] = own[i] = static_cast<float>(i % 251 + static_cast<std::size_t>(world.rank()));
  }
  world.allreduce(std::span<float>(foreign), kolo::ReduceOp::sum);
  world.allreduce(own.span(), kolo::ReduceOp::sum);
  for (std::size_t i = 0; i < count; ++i) {
    const auto expected = static_cast<float>(static_cast<int>(i % 251) * n + n * (n - 1) / 2);
    expect(foreign[i] == expected && own[i] == expected,
           "allreduce of " + std::to_string(count) + " at " + std::to_string(i));
  }
}

std::string check() {
  auto& world = kolo::world();
  const int n = world.size();
  for (const std::size_t count : {0UL, 1UL, 3UL, 1001UL, 1UL << 18, (1UL << 20) + 7}) {
    check_allreduce(world, count);
  }
  std::vector<int> data(1000, world.rank());
  world.broadcast(std::span<int>(data), n - 1);
  expect(data.front() == n - 1 && data.back() == n - 1, "broadcast");
  const std::vector<int> mine(static_cast<std::size_t>(world.rank()) + 1, world.rank());
  const auto all = world.allgather(std::span<const int>(mine));
  std::vector<int> expected;
  for (int r = 0; r < n; ++r) expected.insert(expected.end(), static_cast<std::size_t>(r) + 1, r);
  expect(all == expected, "allgather");
  world.barrier();
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return "ok " + std::string(host) + " " + world.transport() + " " +
         std::to_string(kolo::local_rank()) + "/" + std::to_string(kolo::local_size()) + " " +
         std::to_string(kolo::cross_rank()) + "/" + std::to_string(kolo::cross_size());
}

/// The failure that ends the loop. Sizes alternate, so that it may come at any stage.
kolo::Error loop_until_it_fails(const std::string& running) {
  auto& world = kolo::world();
  std::vector<float> small(2), large(1 << 19);
  try {
    for (int i = 0;; ++i) {
      world.allreduce(std::span<float>(small), kolo::ReduceOp::max);
      world.allreduce(std::span<float>(large), kolo::ReduceOp::max);
      if (i == 5) publish(running, std::to_string(getpid()));
    }
  } catch (const kolo::Error& error) {
    return error;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string mode = argv[1], directory = argv[2];
  try {
    kolo::init();
    const std::string base = directory + "/rank-" + std::to_string(kolo::rank());
    if (mode == "check") {
      publish(base + ".result", check());
      kolo::shutdown();
      return 0;
    }
    // The launcher ends the rest as soon as one rank fails; each shall tell what it saw first.
    signal(SIGTERM, SIG_IGN);
    const kolo::Error error = loop_until_it_fails(base + ".pid");
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    publish(base + ".result",
            std::string(to_string(error.code())) + " " + std::to_string(error.rank().value_or(-1)) +
                " " +
                std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()));
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
