// Virtual ranks: the same weights, bit for bit, after every step, whatever the number of ranks, the
// hosts they are on and the way bytes move between them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "comm/wire/messenger.h"
#include "kolo/error.h"
#include "kolo/torch/sync_batch_norm.h"
#include "multiproc/train/bits.h"
#include "multiproc/train/toy.h"
#include "support/scale.h"

namespace kolo::test {
namespace {

/// KOLO_TEST_STEPS=500 is the long way.
const int kSteps = [] {
  const char* given = std::getenv("KOLO_TEST_STEPS");
  return given != nullptr ? std::atoi(given) : kSanitized ? 20 : 60;
}();

std::vector<std::string> bits_of(const std::vector<int>& host_of_rank,
                                 const std::string& transport) {
  ::setenv("KOLO_NETWORK_INTERFACE", "lo", 1);
  ProcessRanks ranks({.host_of_rank = host_of_rank}, [&](ProcessRank& me) {
    at::set_num_threads(1);
    Context context(me.options(std::chrono::seconds(30), transport));
    Engine engine(context);
    std::string lines = bits_of_each_step(engine, kSteps);
    engine.barrier();
    return lines;
  });
  std::vector<std::string> all;
  for (const Outcome& outcome : ranks.finish()) {
    EXPECT_EQ(outcome.error, "");
    all.push_back(outcome.result);
  }
  return all;
}

const std::string& bits_of_one_rank() {
  static const std::string bits = bits_of({0}, "auto").front();
  return bits;
}

void expect_the_bits_of_one_rank(const std::vector<int>& host_of_rank,
                                 const std::string& transport) {
  ASSERT_EQ(std::count(bits_of_one_rank().begin(), bits_of_one_rank().end(), '\n'), kSteps);
  int rank = 0;
  for (const std::string& bits : bits_of(host_of_rank, transport))
    EXPECT_EQ(first_difference(bits_of_one_rank(), bits), "") << "rank " << rank++;
}

struct Ranks {
  std::string name, transport;
  std::vector<int> host_of_rank;
};

std::vector<Ranks> on_one_host(const std::string& transport) {
  return {{"two", transport, std::vector<int>(2)},
          {"three", transport, std::vector<int>(3)},
          {"four", transport, std::vector<int>(4)},
          {"eight", transport, std::vector<int>(8)}};
}

class ElasticBits : public testing::TestWithParam<Ranks> {};

TEST_P(ElasticBits, AreThoseOfOneRank) {
  expect_the_bits_of_one_rank(GetParam().host_of_rank, GetParam().transport);
}

const auto kNameOf = [](const auto& info) { return info.param.name; };

INSTANTIATE_TEST_SUITE_P(SharedMemory, ElasticBits, testing::ValuesIn(on_one_host("shm")), kNameOf);
INSTANTIATE_TEST_SUITE_P(Tcp, ElasticBits, testing::ValuesIn(on_one_host("tcp")), kNameOf);
INSTANTIATE_TEST_SUITE_P(ThreeHosts, ElasticBits,
                         testing::Values(Ranks{"three", "auto", {0, 1, 2}},
                                         Ranks{"four", "auto", {0, 0, 1, 2}},
                                         Ranks{"eight", "auto", {0, 0, 0, 1, 1, 1, 2, 2}},
                                         Ranks{"dealt_out", "auto", {0, 1, 2, 0, 1, 2, 0, 1}}),
                         kNameOf);

/// What a command prints.
std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string output;
  for (std::array<char, 4096> part{};
       const std::size_t got = std::fread(part.data(), 1, part.size(), pipe);)
    output.append(part.data(), got);
  return ::pclose(pipe) == 0 ? output : "failed: " + output;
}

/// The first lines of a text.
std::string head(const std::string& text, int lines) {
  std::size_t end = 0;
  for (; lines > 0 && end != std::string::npos; --lines) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

class ElasticBitsMpi : public testing::TestWithParam<int> {};

TEST_P(ElasticBitsMpi, AreThoseOfOneRank) {
  std::string why;
  if (!comm::wire_plugin_available("openmpi", &why)) GTEST_SKIP() << why;
  if (std::system("command -v mpirun.openmpi > /dev/null") != 0)
    GTEST_SKIP() << "mpirun.openmpi is not installed";
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "kolo_bits_rank";
  // Ranks that wait spin: with more of them than cores a step takes long.
  const int steps = std::getenv("KOLO_TEST_STEPS") != nullptr ? kSteps : std::min(kSteps, 20);
  const std::string output = output_of(
      fmt::format("OMP_NUM_THREADS=1 KOLO_TRANSPORT=mpi timeout 200 mpirun.openmpi "
                  "--allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -np {} '{}' {} "
                  "2>&1 < /dev/null",
                  GetParam(), program.string(), steps));
  EXPECT_EQ(first_difference(head(bits_of_one_rank(), steps), output), "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, ElasticBitsMpi, testing::Values(2, 3, 4, 8));

TEST(VirtualRanksOfAnOptimizer, WrongUseIsExplained) {
  run_ranks(2, [](Engine& engine, ProcessRank&) {
    ToyNet net = make_net();
    auto inner = sgd()(net->parameters());
    DistributedOptimizerOptions options;
    options.engine = &engine;
    const auto error_of = [](const auto& action) -> std::string {
      try {
        action();
      } catch (const Error& error) {
        return error.message();
      }
      return "";
    };
    const auto make = [&] { DistributedOptimizer(*inner, net->named_parameters(), options); };
    options.virtual_ranks = 1;
    EXPECT_THAT(error_of(make), testing::HasSubstr("1 virtual ranks cannot be shared out"));
    options.virtual_ranks = 4;
    options.compression = Compression::fp16();
    EXPECT_THAT(error_of(make), testing::HasSubstr("without compression"));
    options.compression = Compression::none();
    options.shard_optimizer_state = true;
    EXPECT_THAT(error_of(make), testing::HasSubstr("without shard_optimizer_state"));
    options.shard_optimizer_state = false;

    DistributedOptimizer optimizer(*inner, net->named_parameters(), options);
    ASSERT_EQ(optimizer.virtual_ranks().size(), 2U);
    const int first = optimizer.virtual_ranks()[0], second = optimizer.virtual_ranks()[1];
    EXPECT_THAT(error_of([&] { loss_of(net, batch_of(0, 0, 4)).backward(); }),
                testing::HasSubstr("inside a micro_batch()"));
    EXPECT_THAT(error_of([&] { auto micro_batch = optimizer.micro_batch(second); }),
                testing::HasSubstr("does not come next"));
    const auto compute = [&](int v) {
      auto micro_batch = optimizer.micro_batch(v);
      loss_of(net, batch_of(0, v, 4)).backward();
    };
    compute(first);
    EXPECT_THAT(error_of([&] { optimizer.step(); }),
                testing::HasSubstr(fmt::format("before the virtual ranks {}", second)));
    compute(second);
    optimizer.step();
    EXPECT_EQ(optimizer.steps(), 1U);
    SyncBatchNorm norm(SyncBatchNormOptions(4).engine(&engine));
    EXPECT_THAT(error_of([&] {
                  auto micro_batch = optimizer.micro_batch(first);
                  norm->forward(torch::ones({2, 4}));
                }),
                testing::HasSubstr("use BatchNorm and average_with_each_step"));
    DistributedOptimizerOptions without;
    without.engine = &engine;
    DistributedOptimizer plain(*inner, net->named_parameters(), without);
    EXPECT_THAT(error_of([&] { auto micro_batch = plain.micro_batch(0); }),
                testing::HasSubstr("there are no virtual ranks"));
  });
}

}  // namespace
}  // namespace kolo::test
