// One submitted operation: the request that the other ranks see, and the memory and the result that
// belong to this rank.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/interrupt.h"
#include "comm/group.h"
#include "comm/shm/waiter.h"
#include "kolo/engine.h"
#include "kolo/error.h"

namespace kolo::runtime {

using comm::OpKind;

/// What must fit between the ranks: plain data that travels to the leader.
struct Request {
  std::string name;
  OpKind kind = OpKind::barrier;
  ReduceOp op = ReduceOp::sum;
  int root = -1;  ///< member
  Scaling scaling{};
  struct Tensor {
    DataType type = DataType::uint8;
    Shape shape;
  };
  std::vector<Tensor> tensors;

  [[nodiscard]] std::size_t bytes() const;
};

struct Operation {
  Request request;
  std::vector<TensorArg> tensors;  ///< shapes are in the request
  std::vector<std::size_t> splits;
  OutputAllocator allocate;
  std::chrono::steady_clock::time_point submitted;

  // Written by the thread that completes it, read once it is_done().
  std::vector<std::size_t> counts;
  std::optional<Error> error;

  [[nodiscard]] bool is_done() const noexcept { return done_.load(std::memory_order_acquire) != 0; }
  /// Throws cancelled if the wait is interrupted (base/interrupt.h); the operation goes on.
  void wait() { comm::Waiter(/*crowded=*/true).wait(done_, 1, sleepers_, throw_if_interrupted); }
  void complete() { comm::Waiter::publish(done_, 1, sleepers_); }
  void fail(const Error& why) {
    error = why;
    complete();
  }

 private:
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace kolo::runtime
