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

#include "comm/group.h"
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

  // Written by the thread that completes it, read after `done`.
  std::vector<std::size_t> counts;
  std::optional<Error> error;
  std::atomic<bool> done{false};

  void complete() {
    done.store(true, std::memory_order_release);
    done.notify_all();
  }
  void fail(const Error& why) {
    error = why;
    complete();
  }
};

}  // namespace kolo::runtime
