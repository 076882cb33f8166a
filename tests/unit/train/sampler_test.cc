#include "kolo/torch/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "kolo/error.h"

namespace kolo {
namespace {

using Samples = std::vector<std::size_t>;

Samples take_all(DistributedSampler& sampler, std::size_t batch) {
  Samples all;
  while (auto samples = sampler.next(batch))
    all.insert(all.end(), samples->begin(), samples->end());
  return all;
}

Samples sorted(Samples samples) {
  std::sort(samples.begin(), samples.end());
  return samples;
}

SamplerOptions rank_of(int rank, int ranks, Tail tail = Tail::pad) {
  SamplerOptions options;
  options.rank = rank;
  options.ranks = ranks;
  options.tail = tail;
  options.seed = 5;
  return options;
}

Samples numbers_below(std::size_t count) {
  Samples all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

class EveryTail : public testing::TestWithParam<std::tuple<int, int, Tail>> {};

TEST_P(EveryTail, VisitsEachSampleAsPromised) {
  const auto [size, ranks, tail] = GetParam();
  const auto samples = static_cast<std::size_t>(size), parts = static_cast<std::size_t>(ranks);
  Samples together;
  for (int rank = 0; rank < ranks; ++rank) {
    DistributedSampler sampler(samples, rank_of(rank, ranks, tail));
    sampler.set_epoch(3);
    Samples mine = take_all(sampler, 4);
    EXPECT_EQ(mine.size(), samples_per_rank(samples, ranks, rank, tail));
    together.insert(together.end(), mine.begin(), mine.end());
  }
  std::map<std::size_t, int> visits;
  for (std::size_t sample : together) ++visits[sample];
  const auto most =
      std::max_element(visits.begin(), visits.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (tail == Tail::uneven) {
    EXPECT_EQ(sorted(together), numbers_below(samples));
  }
  if (tail == Tail::pad) {
    EXPECT_EQ(visits.size(), samples);
    EXPECT_EQ(together.size(), (samples + parts - 1) / parts * parts);
  }
  if (tail == Tail::drop) {
    EXPECT_EQ(together.size(), samples / parts * parts);
    if (!visits.empty()) {
      EXPECT_EQ(most->second, 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, EveryTail,
                         testing::Combine(testing::Values(1, 2, 17, 100),
                                          testing::Values(1, 2, 3, 7),
                                          testing::Values(Tail::pad, Tail::drop, Tail::uneven)));

TEST(DistributedSampler, ShufflesAnewInEachEpoch) {
  DistributedSampler sampler(50, rank_of(0, 1));
  const Samples first = take_all(sampler, 7);
  sampler.set_epoch(1);
  const Samples second = take_all(sampler, 7);
  EXPECT_NE(first, second);
  EXPECT_EQ(sorted(first), sorted(second));
  sampler.set_epoch(0);
  EXPECT_EQ(take_all(sampler, 9), first);

  SamplerOptions plain = rank_of(0, 1);
  plain.shuffle = false;
  DistributedSampler in_order(50, plain);
  EXPECT_EQ(take_all(in_order, 7), numbers_below(50));
}

TEST(DistributedSampler, GivesTheSameGlobalBatchesToAnyNumberOfRanks) {
  constexpr std::size_t kGlobalBatch = 12;
  auto batches = [&](int ranks) {
    std::vector<Samples> all;
    for (int rank = 0; rank < ranks; ++rank) {
      DistributedSampler sampler(120, rank_of(rank, ranks));
      for (std::size_t step = 0;; ++step) {
        auto samples = sampler.next(kGlobalBatch / static_cast<std::size_t>(ranks));
        if (!samples) break;
        if (all.size() <= step) all.emplace_back();
        all[step].insert(all[step].end(), samples->begin(), samples->end());
      }
    }
    for (Samples& batch : all) batch = sorted(batch);
    return all;
  };
  const auto one = batches(1);
  EXPECT_EQ(one.size(), 10U);
  for (int ranks : {2, 3, 4, 6}) EXPECT_EQ(batches(ranks), one) << ranks << " ranks";
}

TEST(DistributedSampler, ContinuesFromItsState) {
  DistributedSampler sampler(40, rank_of(0, 1));
  sampler.set_epoch(2);
  (void)sampler.next(8);
  DistributedSampler other(40, rank_of(0, 1));
  other.load_state(sampler.state());
  EXPECT_EQ(take_all(other, 8), take_all(sampler, 8));
  EXPECT_EQ(other.epoch(), 2U);

  // Also with another number of ranks: what is left is dealt out to them.
  DistributedSampler again(40, rank_of(0, 1));
  again.set_epoch(2);
  Samples seen = *again.next(8);
  for (int rank = 0; rank < 4; ++rank) {
    DistributedSampler part(40, rank_of(rank, 4));
    part.load_state(again.state());
    const Samples mine = take_all(part, 3);
    seen.insert(seen.end(), mine.begin(), mine.end());
  }
  EXPECT_EQ(sorted(seen), numbers_below(40));

  DistributedSampler wrong(41, rank_of(0, 1));
  EXPECT_THROW(wrong.load_state(sampler.state()), Error);
  EXPECT_THROW(wrong.load_state("{"), Error);
}

TEST(DistributedSampler, LeavesOutAPartialBatchIfAsked) {
  SamplerOptions options = rank_of(0, 1);
  options.drop_partial_batch = true;
  DistributedSampler sampler(10, options);
  EXPECT_EQ(take_all(sampler, 4).size(), 8U);
}

TEST(DistributedSampler, SurvivesTorchArchives) {
  DistributedSampler sampler(20, rank_of(1, 2));
  sampler.set_epoch(4);
  (void)sampler.next(3);
  torch::serialize::OutputArchive out;
  sampler.save(out);
  std::stringstream stream;
  out.save_to(stream);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  DistributedSampler other(20, rank_of(1, 2));
  other.load(in);
  EXPECT_EQ(take_all(other, 3), take_all(sampler, 3));
}

TEST(DistributedSampler, RefusesBadRanks) {
  EXPECT_THROW(DistributedSampler(10, rank_of(2, 2)), Error);
  DistributedSampler sampler(10, rank_of(0, 2));
  EXPECT_THROW((void)sampler.next(0), Error);
}

/// A data set that returns its index, as libtorch's loaders want it.
struct Numbers : torch::data::datasets::Dataset<Numbers, std::size_t> {
  std::size_t get(std::size_t index) override { return index; }
  torch::optional<std::size_t> size() const override { return 30; }
};

TEST(DistributedSampler, WorksInLibtorchsLoader) {
  Samples seen;
  for (int rank = 0; rank < 2; ++rank) {
    auto loader = torch::data::make_data_loader(Numbers(), DistributedSampler(30, rank_of(rank, 2)),
                                                torch::data::DataLoaderOptions(4));
    for (auto& batch : *loader) seen.insert(seen.end(), batch.begin(), batch.end());
  }
  EXPECT_EQ(sorted(seen), numbers_below(30));
}

TEST(ElasticSampler, IsRepartitionedInTheMiddleOfAnEpoch) {
  constexpr std::size_t kSamples = 60, kBatch = 4;
  std::vector<ElasticSampler> four;
  for (int rank = 0; rank < 4; ++rank) four.emplace_back(kSamples, rank_of(rank, 4, Tail::uneven));
  Samples seen;
  for (int step = 0; step < 2; ++step)
    for (auto& sampler : four) {
      const Samples mine = *sampler.next(kBatch);
      seen.insert(seen.end(), mine.begin(), mine.end());
      sampler.record_batch(kBatch);
    }
  // A third batch was begun and lost with a rank: nobody recorded it.
  for (auto& sampler : four) (void)sampler.next(kBatch);
  EXPECT_EQ(four[0].recorded(), 32U);

  for (int rank = 0; rank < 3; ++rank) {
    four[static_cast<std::size_t>(rank)].repartition(rank, 3);
    const Samples mine = take_all(four[static_cast<std::size_t>(rank)], kBatch);
    seen.insert(seen.end(), mine.begin(), mine.end());
  }
  EXPECT_EQ(sorted(seen), numbers_below(kSamples));

  ElasticSampler late(kSamples, rank_of(0, 1, Tail::uneven));
  late.load_state(four[0].state());
  EXPECT_EQ(late.recorded(), 32U);
  EXPECT_EQ(take_all(late, kBatch).size(), kSamples - 32);
  late.set_epoch(1);
  EXPECT_EQ(take_all(late, kBatch).size(), kSamples);
}

TEST(StepsPerEpoch, FollowTheTail) {
  EXPECT_EQ(steps_per_epoch(100, 8, 1), 13U);
  EXPECT_EQ(steps_per_epoch(100, 8, 1, Tail::pad, false), 12U);
  EXPECT_EQ(steps_per_epoch(101, 10, 5, Tail::pad), 3U);   // 21 samples each
  EXPECT_EQ(steps_per_epoch(101, 10, 5, Tail::drop), 2U);  // 20 samples each
  EXPECT_EQ(steps_per_epoch(101, 10, 5, Tail::uneven), 3U);
  EXPECT_EQ(steps_per_epoch(3, 10, 5, Tail::drop), 0U);
  EXPECT_EQ(steps_per_epoch_of_endless(1000, 3), 334U);
  EXPECT_THROW((void)steps_per_epoch(10, 0, 1), Error);
  EXPECT_THROW((void)steps_per_epoch(10, 1, 0), Error);
}

}  // namespace
}  // namespace kolo
