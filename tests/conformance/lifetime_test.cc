// Coming and going: nothing is left behind.
#include <dirent.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/deadline.h"
#include "conformance/conformance.h"

namespace kolo::test {
namespace {

// What this process holds.
struct Holdings {
  int descriptors = 0, maps = 0, threads = 0;
  long resident_kib = 0;

  static Holdings now() {
    Holdings held;
    held.descriptors = entries("/proc/self/fd");
    held.threads = entries("/proc/self/task");
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) ++held.maps;
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (word == "VmRSS:") status >> held.resident_kib;
    return held;
  }

 private:
  static int entries(const char* path) {
    DIR* directory = ::opendir(path);
    int count = 0;
    while (::readdir(directory) != nullptr) ++count;
    ::closedir(directory);
    return count;
  }
};

void expect_no_growth(const Holdings& before, const Holdings& after) {
  EXPECT_LE(after.descriptors, before.descriptors);
  EXPECT_LE(after.threads, before.threads);
  EXPECT_LE(after.maps, before.maps + 16);  // the allocator's own arenas come and go
  // A sanitizer keeps freed memory for a while.
  if (!kSanitized) {
    EXPECT_LE(after.resident_kib, before.resident_kib + 4096);
  }
}

// A job of `n` thread ranks that meets, works a little and ends.
void live_once(int n) {
  ThreadRanks ranks({.host_of_rank = std::vector<int>(n, 0)});
  ranks.run([&](Communicator& comm) {
    EXPECT_EQ(comm.allreduce(1, ReduceOp::sum), n);
    auto own = comm.allocate<float>(5000);
    comm.allreduce(own.span());
    std::vector<float> foreign(5000);
    comm.allreduce(std::span(foreign));
  });
}

TEST(Lifetime, AThousandJobsLeaveNothing) {
  for (int i = 0; i < 20; ++i) live_once(2);
  const Holdings before = Holdings::now();
  for (int i = 0; i < scaled(1000); ++i) live_once(2);
  expect_no_growth(before, Holdings::now());
}

TEST(Lifetime, SubsetsThatEndLeaveNothing) {
  ThreadRanks ranks({.host_of_rank = {0, 0, 0}});
  auto make_subsets = [&](int count) {
    ranks.run([&](Communicator& comm) {
      for (int i = 0; i < count; ++i) {
        auto group = comm.subset({0, 1 + i % 2});
        if (!group) continue;
        std::vector<float> data(3000);
        group->allreduce(std::span(data));
      }
    });
  };
  make_subsets(50);
  const Holdings before = Holdings::now();
  make_subsets(scaled(20'000));
  expect_no_growth(before, Holdings::now());
}

TEST(Lifetime, BuffersAreZeroAndComeBack) {
  ThreadRanks ranks({.host_of_rank = {0, 0}});
  auto use = [&](int count) {
    ranks.run([&](Communicator& comm) {
      Random random(7 + static_cast<std::uint64_t>(comm.rank()));
      std::vector<Buffer<std::uint8_t>> kept(20);
      for (int i = 0; i < count; ++i) {
        const std::size_t size = random.below(3) == 0 ? random.below(300'000) : random.below(9000);
        auto fresh = comm.allocate<std::uint8_t>(size);
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(fresh.data()) % 64, 0U);
        for (std::uint8_t byte : fresh) ASSERT_EQ(byte, 0) << "buffer " << i << " of " << size;
        std::fill(fresh.begin(), fresh.end(), 0xff);
        kept[random.below(kept.size())] = std::move(fresh);
      }
    });
  };
  use(200);
  const Holdings before = Holdings::now();
  use(scaled(3000));
  expect_no_growth(before, Holdings::now());
}

TEST(Lifetime, ABufferMayOutliveItsContext) {
  Buffer<float> kept;
  {
    ThreadRanks ranks({.host_of_rank = {0, 0}});
    ranks.run([&](Communicator& comm) {
      auto data = comm.allocate<float>(100'000);
      std::fill(data.begin(), data.end(), 1.0F);
      comm.allreduce(data.span(), ReduceOp::sum);
      if (comm.rank() == 0) kept = std::move(data);
    });
  }
  EXPECT_EQ(kept[99'999], 2.0F);
  kept[0] = 5.0F;
}

TEST(Lifetime, ASubsetMayOutliveItsContext) {
  std::vector<std::unique_ptr<Communicator>> groups(2);
  {
    ThreadRanks ranks({.host_of_rank = {0, 0}});
    ranks.run([&](Communicator& comm) { groups[comm.rank()] = comm.subset({0, 1}); });
  }
  std::vector<std::thread> threads;
  for (auto& group : groups)
    threads.emplace_back([&group] {
      // The ranks have left the job; whether their groups still work is not promised, only that
      // they say so.
      try {
        EXPECT_EQ(group->allreduce(1, ReduceOp::sum), 2);
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::peer_lost) << e.what();
      }
      group.reset();
    });
  for (auto& thread : threads) thread.join();
}

TEST(Lifetime, MemoryThatIsNotThereIsSaid) {
  auto meeting = Meeting::create({0});
  ContextOptions options;
  options.bootstrap = meeting->join(0);
  options.shared_memory_bytes = std::size_t{64} << 20;
  Context context(options);
  expect_error(ErrorCode::unavailable,
               [&] { (void)context.world().allocate<double>(std::size_t{1} << 30); });
  auto small = context.world().allocate<double>(1000);
  EXPECT_EQ(small[999], 0.0);
}

// --- the default context -------------------------------------------------------------------------

ContextOptions alone() {
  ContextOptions options;
  options.bootstrap = Meeting::create({0})->join(0);
  return options;
}

// "For ever", as programs write it.
TEST(ContextSettings, TimesOfAnyLengthAreWaited) {
  for (const auto timeout : {std::chrono::milliseconds::max(),
                             std::chrono::milliseconds(std::chrono::hours(24 * 365 * 280))}) {
    ThreadRanks ranks({.host_of_rank = {0, 0}, .timeout = timeout});
    ranks.run([](Communicator& comm) { EXPECT_EQ(comm.allreduce(1, ReduceOp::sum), 2); });
  }
  EXPECT_FALSE(Deadline::after(std::chrono::hours::max()).passed());
  EXPECT_FALSE(Deadline::after(std::chrono::nanoseconds::max()).passed());
}

TEST(ContextSettings, NumbersThatMeanNothingAreRefusedByTheirNames) {
  const std::pair<const char*, const char*> wrong[] = {{"KOLO_TIMEOUT_SECONDS", "0"},
                                                       {"HOROVOD_GLOO_TIMEOUT_SECONDS", "0"},
                                                       {"KOLO_SHARED_MEMORY_BYTES", "-1"}};
  for (const auto& [name, value] : wrong) {
    ::setenv(name, value, 1);
    try {
      Context context;
      ADD_FAILURE() << name << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_TRUE(error.message().starts_with(std::string(name) + "='" + value + "'"))
          << error.message();
    }
    ::unsetenv(name);
  }
}

TEST(DefaultContext, ThreadsMayAllBeginWithInit) {
  for (int round = 0; round < scaled(20); ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([] {
        init();
        EXPECT_TRUE(is_initialized());
        EXPECT_EQ(rank(), 0);
      });
    for (auto& thread : threads) thread.join();
    shutdown();
    EXPECT_FALSE(is_initialized());
  }
}

TEST(DefaultContext, InitShutdownInit) {
  EXPECT_FALSE(is_initialized());
  expect_error(ErrorCode::failed_precondition, [] { (void)rank(); });
  expect_error(ErrorCode::failed_precondition, [] { (void)world(); });
  shutdown();  // nothing to do
  for (int i = 0; i < 3; ++i) {
    init(alone());
    Communicator* before = &world();
    init(alone());  // already there
    EXPECT_EQ(&world(), before);
    EXPECT_TRUE(is_initialized());
    EXPECT_EQ(rank(), 0);
    EXPECT_EQ(size(), 1);
    EXPECT_EQ(local_rank(), 0);
    EXPECT_EQ(local_size(), 1);
    EXPECT_EQ(cross_rank(), 0);
    EXPECT_EQ(cross_size(), 1);
    EXPECT_TRUE(is_homogeneous());
    EXPECT_EQ(world().allreduce(3.5), 3.5);
    shutdown();
    EXPECT_FALSE(is_initialized());
  }
}

TEST(DefaultContext, AThousandTimesLeavesNothing) {
  auto once = [] {
    init(alone());
    EXPECT_EQ(world().allreduce(2), 2);
    shutdown();
  };
  for (int i = 0; i < 20; ++i) once();
  const Holdings before = Holdings::now();
  for (int i = 0; i < scaled(1000); ++i) once();
  expect_no_growth(before, Holdings::now());
}

}  // namespace
}  // namespace kolo::test
