#include "kolo/torch/threads.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kolo/error.h"

namespace kolo {
namespace {

TEST(ComputeThreads, ReachLibtorch) {
  set_compute_threads(2);
  EXPECT_EQ(at::get_num_threads(), 2);
  set_compute_threads(1);
  EXPECT_EQ(at::get_num_threads(), 1);
  EXPECT_TRUE(compute_threads_are_chosen());
}

TEST(ComputeThreads, MustBePositive) { EXPECT_THROW(set_compute_threads(0), Error); }

}  // namespace
}  // namespace kolo
