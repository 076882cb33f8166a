// Aging evolution, alone and with an optimiser for the hyperparameters (agebo).
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "kolo/error.h"
#include "kolo/random.h"
#include "kolo/search.h"
#include "search/sampler/subspace.h"

namespace kolo::search {
namespace {

using SpacePointer = std::shared_ptr<const Space>;

Spec architecture(int nodes, int operations) {
  std::vector<Value> indices;
  for (int k = 0; k < operations; ++k) indices.emplace_back(k);
  Spec::List list;
  for (int i = 0; i < nodes; ++i) list.emplace_back(choice(indices));
  return Spec(std::move(list));
}

SpacePointer nodes_only(int nodes = 6, int operations = 5) {
  return Space::Builder().add("arch_seq", architecture(nodes, operations)).build();
}

SpacePointer joint_space() {
  return Space::Builder()
      .add("arch_seq", architecture(6, 5))
      .add("batch_size", ordinal({32, 64, 128, 256}))
      .add("learning_rate", loguniform(1e-4, 1e-1))
      .build();
}

double sum_of_indices(const Point& point) {
  double sum = 0;
  for (std::size_t i = 0; i < 6; ++i) sum += point[i];
  return sum;
}

SamplerOptions maximize(std::uint64_t seed, std::map<std::string, Value> settings = {}) {
  SamplerOptions options;
  options.directions = {Direction::maximize};
  options.seed = seed;
  options.settings = std::move(settings);
  return options;
}

/// Runs a search to its end and gives the objective of each trial.
std::vector<double> search_with(Sampler& sampler, std::size_t trials,
                                const std::function<double(const Point&)>& objective) {
  std::vector<double> values;
  for (std::uint64_t i = 0; i < trials; ++i) {
    const Point point = *sampler.ask(TrialId{i});
    values.push_back(objective(point));
    sampler.tell(TrialId{i}, Outcome::complete(values.back()));
  }
  return values;
}

std::size_t differences(const Point& left, const Point& right, std::size_t first,
                        std::size_t last) {
  std::size_t count = 0;
  for (std::size_t i = first; i < last; ++i) count += left[i] != right[i];
  return count;
}

TEST(Evolution, ChildrenDifferInOneParameter) {
  const auto sampler =
      make_sampler("evolution", nodes_only(), maximize(1, {{"population", 10}, {"sample", 10}}));
  std::vector<Point> last;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Point point = *sampler->ask(TrialId{i});
    if (i >= 10) {
      // With samples as large as the population, the parent is the best of the last ten.
      const auto parent = std::max_element(last.end() - 10, last.end(), [](auto& a, auto& b) {
        return sum_of_indices(a) < sum_of_indices(b);
      });
      bool one_away = false;  // equals of the best are parents too
      for (auto member = last.end() - 10; member != last.end(); ++member)
        one_away = one_away || (sum_of_indices(*member) == sum_of_indices(*parent) &&
                                differences(*member, point, 0, 6) == 1);
      EXPECT_TRUE(one_away) << "trial " << i;
    }
    last.push_back(point);
    sampler->tell(TrialId{i}, Outcome::complete(sum_of_indices(point)));
  }
}

TEST(Evolution, TriesNothingTwiceUnlessTold) {
  const auto repeats = [](bool filter) {
    const auto sampler = make_sampler(
        "evolution", nodes_only(),
        maximize(2, {{"population", 10}, {"sample", 10}, {"filter_duplicated", filter}}));
    std::set<Point> seen;
    search_with(*sampler, 200, [&](const Point& point) {
      seen.insert(point);
      return point[0];
    });
    return 200 - seen.size();
  };
  EXPECT_EQ(repeats(true), 0U);
  EXPECT_GT(repeats(false), 0U);
}

TEST(Evolution, ASmallSpaceIsNotTheEnd) {
  const auto sampler = make_sampler("evolution", nodes_only(1, 3), maximize(3));
  EXPECT_EQ(search_with(*sampler, 30, [](const Point& point) { return point[0]; }).size(), 30U);
}

TEST(Evolution, FindsTheLargestIndexEverywhere) {
  SamplerOptions options = maximize(4);
  options.budget = 400;
  const auto sampler = make_sampler("evolution", nodes_only(), options);
  const auto values = search_with(*sampler, 400, sum_of_indices);
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 24);
}

TEST(Agebo, FindsTheLargestIndexEverywhere) {
  for (const SpacePointer& space : {nodes_only(), joint_space()}) {
    SamplerOptions options = maximize(5);
    options.budget = 400;
    const auto sampler = make_sampler("agebo", space, options);
    const auto values = search_with(*sampler, 400, sum_of_indices);
    EXPECT_EQ(*std::max_element(values.begin(), values.end()), 24);
  }
}

TEST(Agebo, LearnsTheHyperparametersToo) {
  SamplerOptions options = maximize(6);
  options.budget = 300;
  const auto sampler = make_sampler("agebo", joint_space(), options);
  // A rate of 0.01 and the second batch size are best for every architecture.
  const auto penalty = [](const Point& point) {
    return 2 * std::abs(std::log10(point[7]) + 2) + std::abs(point[6] - 1);
  };
  double early = 0, late = 0;
  std::size_t trial = 0;
  search_with(*sampler, 300, [&](const Point& point) {
    if (trial < 10) early += penalty(point) / 10;
    if (trial >= 250) late += penalty(point) / 50;
    ++trial;
    return sum_of_indices(point) - 3 * penalty(point);
  });
  EXPECT_LT(late, early / 2);
}

TEST(Agebo, ChildrenDifferInOneOperation) {
  const auto sampler =
      make_sampler("agebo", joint_space(), maximize(7, {{"population", 10}, {"sample", 10}}));
  std::vector<Point> tried;
  search_with(*sampler, 120, [&](const Point& point) {
    if (tried.size() >= 10) {
      std::size_t nearest = 6;
      for (std::size_t k = tried.size() - 10; k < tried.size(); ++k)
        nearest = std::min(nearest, differences(tried[k], point, 0, 6));
      EXPECT_LE(nearest, 1U) << "trial " << tried.size();
    }
    tried.push_back(point);
    return sum_of_indices(point);
  });
}

TEST(Agebo, SaysWhatItIsWhereOneSideIsMissing) {
  EXPECT_NE(make_sampler("agebo", nodes_only())->explain().find("plain evolution"),
            std::string::npos);
  const auto forest = make_sampler("agebo", joint_space(), maximize(1, {{"evolve", "nothing"}}));
  EXPECT_NE(forest->explain().find("no parameter is to be evolved"), std::string::npos);
  const auto both = make_sampler("agebo", joint_space())->explain();
  EXPECT_NE(both.find("evolution of 6 parameters"), std::string::npos) << both;
  EXPECT_NE(both.find("2 hyperparameters"), std::string::npos) << both;
}

TEST(Agebo, RefusesBadSettings) {
  EXPECT_THROW(make_sampler("agebo", joint_space(), maximize(1, {{"evolve", 3}})), Error);
  EXPECT_THROW(make_sampler("agebo", joint_space(), maximize(1, {{"acq_func", "luck"}})), Error);
  EXPECT_THROW(make_sampler("agebo", joint_space(), maximize(1, {{"kapa", 1}})), Error);
}

TEST(Agebo, PathsAreWholeNames) {
  // "arch" is not above "arch_seq/0".
  const auto sampler = make_sampler("agebo", joint_space(), maximize(1, {{"evolve", "arch"}}));
  EXPECT_NE(sampler->explain().find("no parameter is to be evolved"), std::string::npos);
}

TEST(Subspace, KeepsValuesAndDistributions) {
  const SpacePointer whole = Space::Builder()
                                 .add("a", loguniform(1e-4, 1))
                                 .add("b", integer(3, 9))
                                 .add("c", categorical({"x", "y"}, {3, 1}))
                                 .add("d", quniform(0, 1, 0.25))
                                 .add("e", ordinal({1, 2, 4}))
                                 .add("f", qrandint(4, 16, 4))
                                 .add("g", uniform(0, 1))
                                 .build();
  const Subspace part(whole, {0, 1, 2, 3, 4, 5});
  ASSERT_EQ(part.space()->size(), 6U);
  Random random(1);
  double small = 0, first = 0;
  for (int i = 0; i < 2000; ++i) {
    const Point point = part.space()->sample(random);
    small += point[0] < 1e-2 ? 1.0 / 2000 : 0;
    first += point[2] == 0 ? 1.0 / 2000 : 0;
    Point filled = whole->sample(random);
    part.put(point, filled);
    ASSERT_TRUE(whole->allows(filled));
    ASSERT_TRUE(same_point(part.part_of(filled), point));
  }
  EXPECT_NEAR(small, 0.5, 0.05);
  EXPECT_NEAR(first, 0.75, 0.05);
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(part.space()->parameters()[i].cardinality, whole->parameters()[i].cardinality) << i;
}

TEST(Subspace, RefusesWhatCannotBeCompleted) {
  const SpacePointer whole = Space::Builder()
                                 .add("a", integer(0, 9))
                                 .add("b", choice({"p", "q"}))
                                 .forbid(greater("a", 4))
                                 .build();
  const Subspace part(whole, {0});
  EXPECT_TRUE(part.space()->allows({4}));
  EXPECT_FALSE(part.space()->allows({5}));
  EXPECT_TRUE(part.complete({3}));
  EXPECT_FALSE(part.complete({7}));
}

}  // namespace
}  // namespace kolo::search
