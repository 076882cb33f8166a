// PPO with an agent per rank: one policy, gradients averaged by kolo's collectives.
#include <gtest/gtest.h>

#include "base/files.h"
#include "kolo/context.h"
#include "kolo/error.h"
#include "kolo/nas/ppo.h"
#include "kolo/random.h"
#include "nas/ppo/ppo.h"
#include "support/process_ranks.h"

namespace kolo::nas {
namespace {

using search::Point;
using search::TrialId;
using test::ProcessRank;
using test::ProcessRanks;

std::shared_ptr<const search::Space> six_nodes() {
  search::Spec::List list;
  for (int i = 0; i < 6; ++i) list.emplace_back(search::choice({0, 1, 2, 3, 4}));
  return search::Space::Builder().add("arch_seq", search::Spec(std::move(list))).build();
}

double sum_of(const Point& point) {
  double sum = 0;
  for (const double entry : point) sum += entry;
  return sum;
}

search::SamplerOptions maximize(std::uint64_t budget, std::int64_t episodes) {
  search::SamplerOptions options;
  options.directions = {search::Direction::maximize};
  options.seed = 5;
  options.budget = budget;
  options.settings = {{"network", "ppo_lnlstm_32"}, {"episodes", episodes}};
  return options;
}

/// Runs `body` on forked ranks that have joined the default Context.
void run_agents(int count, const std::function<void(int rank)>& body) {
  ProcessRanks ranks({.host_of_rank = std::vector<int>(static_cast<std::size_t>(count), 0)},
                     [&](ProcessRank& me) {
                       init(me.options(std::chrono::seconds(30)));
                       body(me.rank());
                       world().barrier();
                       shutdown();
                       return std::string("done");
                     });
  for (const test::Outcome& outcome : ranks.finish()) {
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.result, "done");
  }
}

/// Mean objective of the last `late` of `trials`.
double search_with(search::Sampler& sampler, std::uint64_t trials, std::uint64_t late) {
  double sum = 0;
  for (std::uint64_t i = 0; i < trials; ++i) {
    const Point point = *sampler.ask(TrialId{i});
    if (i + late >= trials) sum += sum_of(point) / static_cast<double>(late);
    sampler.tell(TrialId{i}, search::Outcome::complete(sum_of(point)));
  }
  return sum;
}

class Agents : public testing::TestWithParam<int> {};

TEST_P(Agents, LearnTogether) {
  run_agents(GetParam(), [](int rank) {
    // The last agent has more workers than the others.
    const std::int64_t episodes = rank == size() - 1 ? 6 : 4;
    const std::uint64_t batches = 80;
    const std::uint64_t trials = batches * static_cast<std::uint64_t>(episodes);
    const PpoOptions options = with_agents_as_ranks({});
    EXPECT_EQ(options.agent, rank);
    auto sampler = make_ppo_sampler(six_nodes(), maximize(trials, episodes), options);
    const double late = search_with(*sampler, trials, 40);
    EXPECT_GE(world().allreduce(late), 23.0);
  });
}

TEST_P(Agents, KeepTheSameWeights) {
  run_agents(GetParam(), [](int rank) {
    PpoOptions options = with_agents_as_ranks({});
    options.network = "ppo_lnlstm_32";
    options.nminibatches = 2;
    const std::vector<std::uint32_t> choices{3, 4, 5};
    // Seeds that differ: the first agent's weights are everybody's all the same.
    Learner learner(options, choices, 7 + static_cast<std::uint64_t>(rank));
    Random random(static_cast<std::uint64_t>(100 + rank));
    std::vector<std::vector<std::uint32_t>> drawn;
    for (int update = 0; update < 12; ++update) {
      std::vector<Episode> episodes(static_cast<std::size_t>(3 + rank));
      for (Episode& episode : episodes) {
        episode.actions = learner.draw(random);
        episode.reward = random.normal();
      }
      learner.update(episodes, 1.0, Random(static_cast<std::uint64_t>(update)));
      const auto hash = static_cast<std::int64_t>(learner.hash());
      const auto all = world().allgather(std::span(&hash, 1));
      for (const std::int64_t other : all) ASSERT_EQ(other, hash) << "update " << update;
    }
  });
}

TEST_P(Agents, DrawArchitecturesOfTheirOwn) {
  run_agents(GetParam(), [](int) {
    auto sampler = make_ppo_sampler(six_nodes(), maximize(100, 4), with_agents_as_ranks({}));
    const Point point = *sampler->ask(TrialId{0});
    const auto all = world().allgather(std::span<const double>(point));
    for (std::size_t a = 0; a + 6 < all.size(); a += 6)
      EXPECT_FALSE(std::equal(all.begin(), all.begin() + 6,
                              all.begin() + 6 + static_cast<std::ptrdiff_t>(a)));
  });
}

TEST_P(Agents, ContinueFromTheirFilesOrWithout) {
  const TempDir folder;
  run_agents(GetParam(), [&](int rank) {
    const auto file = (folder.path() / std::to_string(rank)).string();
    PpoOptions options = with_agents_as_ranks({});
    options.checkpoint = file;
    options.checkpoint_every = 4;
    const auto space = six_nodes();
    auto original = make_ppo_sampler(space, maximize(200, 4), options);
    std::vector<Point> points;
    for (std::uint64_t i = 0; i < 60; ++i) {
      points.push_back(*original->ask(TrialId{i}));
      original->tell(TrialId{i}, search::Outcome::complete(sum_of(points.back())));
    }
    // First with all files; then one agent has lost its own, and all must do without.
    for (const bool lost : {false, true}) {
      world().barrier();
      if (lost && rank == 0) std::filesystem::remove(file);
      world().barrier();
      auto rebuilt = make_ppo_sampler(space, maximize(200, 4), options);
      for (std::uint64_t i = 0; i < 52; ++i) {
        rebuilt->recall(TrialId{i}, points[i]);
        rebuilt->tell(TrialId{i}, search::Outcome::complete(sum_of(points[i])));
      }
      for (std::uint64_t i = 52; i < 60; ++i) {
        const Point point = *rebuilt->ask(TrialId{i});
        ASSERT_TRUE(search::same_point(point, points[i])) << "trial " << i << " lost " << lost;
        rebuilt->tell(TrialId{i}, search::Outcome::complete(sum_of(point)));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Agents, testing::Values(2, 3));

TEST(AgentWeights, ThatDifferAreNoticed) {
  PpoOptions options;
  options.network = "ppo_lstm_32";
  options.noptepochs = 1;
  // An average that another agent spoils: what comes back is not what was sent.
  int calls = 0;
  options.average_gradients = [&](std::span<float> values, double) {
    if (++calls > 10 && values.size() == 8) values[0] += 1;  // the hash of the weights
  };
  Learner learner(options, {2, 2}, 1);
  const std::vector<Episode> episodes(4, Episode{{0, 1}, 1.0});
  const auto many = [&] {
    for (int i = 0; i < 10; ++i) learner.update(episodes, 1.0, Random(1));
  };
  EXPECT_THROW(many(), Error);
}

}  // namespace
}  // namespace kolo::nas
