// The one measuring loop of `scripts/bench allreduce` and `hosts`: every contender runs this code.
//
// A Peer is the system under test:
//   int rank(), size()
//   std::shared_ptr<float> allocate(const std::string& mode, std::size_t count)
//   void allreduce(float* data, std::size_t count)      float32 sum, in place
//   void barrier()
//
// For each size several buffers are used in turn, so that no result is still in the cache of the
// core that wrote it. All elements are checked before the clock starts and after it has stopped.
// Summing in place multiplies values by the number of ranks each time; before they can overflow the
// buffers are filled anew, outside the timing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/driver_link.h"

namespace bench {

/// Memory from anywhere, as a user's program has it.
inline std::shared_ptr<float> plain_memory(std::size_t count) {
  const std::size_t bytes = (count * sizeof(float) + 63) / 64 * 64;
  auto* memory = static_cast<float*>(std::aligned_alloc(64, bytes));
  if (memory == nullptr) throw std::bad_alloc();
  return {memory, [](float* p) { std::free(p); }};
}

/// Small integers: their sums and the doublings that follow are exact in float32.
inline float initial_value(int rank, std::size_t i) {
  const auto mixed = static_cast<unsigned>(i ^ (i >> 9) ^ (i >> 17)) + 13U * rank;
  return static_cast<float>((mixed & 63U) + 1U);
}

template <class Peer>
class AllreduceLoop {
 public:
  AllreduceLoop(Peer& peer, const std::string& mode, std::size_t bytes, std::size_t buffers)
      : peer_(peer), count_(bytes / sizeof(float)), buffers_(buffers) {
    for (auto& buffer : buffers_) buffer = peer.allocate(mode, count_);
    // The largest value is 64 × ranks × ranks^(uses-1); float32 ends at 2^127.
    max_uses_ = static_cast<std::size_t>(110.0 / std::log2(std::max(peer.size(), 2)));
  }

  /// Checks every element of every buffer, warms up; returns seconds per operation, roughly.
  double warm_up(std::size_t iterations) {
    fill();
    run(buffers_.size());
    check();
    time_of(iterations);
    return time_of(iterations) / static_cast<double>(iterations);
  }

  /// Seconds of each batch of `iterations` operations.
  std::vector<double> measure(std::size_t batches, std::size_t iterations) {
    std::vector<double> seconds;
    for (std::size_t batch = 0; batch < batches; ++batch) seconds.push_back(time_of(iterations));
    check();
    return seconds;
  }

 private:
  void fill() {
    for (auto& buffer : buffers_) {
      float* data = buffer.get();
      for (std::size_t i = 0; i < count_; ++i) data[i] = initial_value(peer_.rank(), i);
    }
    used_ = 0;
  }

  void run(std::size_t iterations) {
    std::size_t next = used_ % buffers_.size();
    for (std::size_t i = 0; i < iterations; ++i) {
      peer_.allreduce(buffers_[next].get(), count_);
      if (++next == buffers_.size()) next = 0;
    }
    used_ += iterations;
  }

  double time_of(std::size_t iterations) {
    if (used_ + iterations > max_uses_ * buffers_.size()) fill();
    peer_.barrier();
    const auto start = monotonic_ns();
    run(iterations);
    return static_cast<double>(monotonic_ns() - start) * 1e-9;
  }

  void check() {
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
      const std::size_t uses = used_ / buffers_.size() + (b < used_ % buffers_.size() ? 1 : 0);
      const float growth = std::pow(static_cast<float>(peer_.size()),
                                    uses == 0 ? 0.0F : static_cast<float>(uses - 1));
      const float* data = buffers_[b].get();
      bool good = true;
      for (std::size_t i = 0; i < count_; ++i) {
        float expected = initial_value(uses == 0 ? peer_.rank() : 0, i);
        for (int r = 1; uses != 0 && r < peer_.size(); ++r) expected += initial_value(r, i);
        expected *= growth;
        good &= std::fabs(data[i] - expected) <= 1e-4F * expected;
      }
      if (!good) throw std::runtime_error("wrong sum in buffer " + std::to_string(b));
    }
  }

  Peer& peer_;
  std::size_t count_;
  std::vector<std::shared_ptr<float>> buffers_;
  std::size_t max_uses_ = 0;
  std::size_t used_ = 0;
};

/// Makes the first allreduce, greets the driver and does what it says until it says quit.
template <class Peer>
void serve(Peer& peer, const RankArguments& arguments) {
  float one = 1.0F;
  peer.allreduce(&one, 1);
  const auto stamp = monotonic_ns();
  DriverLink link(arguments.driver);
  std::ostringstream hello;
  hello << "hello " << arguments.contender << ' ' << peer.rank() << ' ' << stamp;
  link.say(hello.str());
  try {
    for (;;) {
      std::istringstream command(link.hear());
      std::string verb, mode;
      std::size_t bytes = 0, buffers = 0, batches = 0, iterations = 0;
      command >> verb >> mode >> bytes >> buffers >> iterations;
      if (verb == "quit") return;
      AllreduceLoop<Peer> loop(peer, mode, bytes, buffers);
      std::ostringstream warm;
      warm << "warm " << loop.warm_up(iterations);
      link.say(warm.str());
      std::istringstream go(link.hear());
      go >> verb >> batches >> iterations;
      if (verb != "go") return;
      std::ostringstream done;
      done.precision(9);
      done << "done";
      for (double seconds : loop.measure(batches, iterations)) done << ' ' << seconds;
      link.say(done.str());
    }
  } catch (const std::exception& error) {
    link.say(std::string("error ") + error.what());
    throw;
  }
}

/// main() of a rank program: `run` is given the arguments and serves.
template <class Run>
int rank_main(int argc, char** argv, Run run) {
  try {
    run(RankArguments(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

}  // namespace bench
