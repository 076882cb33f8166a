// The plan of buckets: which gradients share one, and in which order they are reduced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kolo/communicator.h"

namespace kolo::runtime {

struct ParameterInfo {
  std::string name;
  std::vector<std::int64_t> shape;
  DataType type = DataType::float32;
  std::size_t count = 0;
  int optimizer_group = 0;
  int user_group = -1;     ///< parameters of one group share a bucket; -1: any
  bool is_sparse = false;  ///< its gradients are gathered, not reduced
};

struct BucketPlan {
  struct Member {
    std::size_t parameter = 0;
    std::size_t offset = 0;  ///< elements
  };
  struct Bucket {
    DataType type = DataType::float32;
    int optimizer_group = 0;  ///< of its first member
    std::size_t count = 0;    ///< elements, padding included
    std::vector<Member> members;
  };
  std::vector<Bucket> buckets;
  /// Equal where plans are; never 0.
  std::uint64_t fingerprint = 0;
};

struct BucketRules {
  std::size_t bucket_bytes = 0;
  /// Buckets do not mix groups of the optimizer, and their sizes divide by this many ranks.
  int shards = 0;
};

/// `order` is the order in which gradients become complete, each parameter once. Consecutive ones
/// of a type fill a bucket up to its size; buckets follow each other in the order in which they
/// become complete.
BucketPlan make_bucket_plan(std::span<const ParameterInfo> parameters,
                            std::span<const std::uint32_t> order, const BucketRules& rules);

/// All that must be equal on the ranks, one line per parameter.
std::string describe(std::span<const ParameterInfo> parameters);

// --- what ranks agree on before they make a plan; each is collective ----------------------------

/// Throws invalid_argument on every rank, naming the first difference, unless all ranks have the
/// same parameters.
void check_same_parameters(Communicator& communicator, std::span<const ParameterInfo> parameters);

/// The order in which gradients came on the first rank; those that did not come last, in reverse.
std::vector<std::uint32_t> agree_on_order(Communicator& communicator, std::size_t parameters,
                                          std::vector<std::uint32_t> came);

}  // namespace kolo::runtime
