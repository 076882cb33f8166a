// What the base class checks for every sampler.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "kolo/error.h"
#include "kolo/random.h"
#include "kolo/search.h"

namespace kolo::search {
namespace {

std::shared_ptr<const Space> small_space() {
  return Space::Builder().add("x", uniform(0, 1)).add("n", randint(0, 10)).build();
}

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

TEST(SamplerTest, RefusesMisuse) {
  auto sampler = make_sampler("random", small_space());
  ASSERT_TRUE(sampler->ask(TrialId{1}));
  EXPECT_EQ(code_of([&] { sampler->ask(TrialId{1}); }), ErrorCode::already_exists);
  EXPECT_EQ(code_of([&] { sampler->tell(TrialId{2}, Outcome::complete(1.0)); }),
            ErrorCode::not_found);
  EXPECT_EQ(code_of([&] {
              sampler->tell(TrialId{1}, Outcome::complete({1.0, 2.0}));
            }),
            ErrorCode::invalid_argument);
  sampler->tell(TrialId{1}, Outcome::complete(1.0));
  EXPECT_EQ(code_of([&] { sampler->tell(TrialId{1}, Outcome::complete(1.0)); }),
            ErrorCode::failed_precondition);
  EXPECT_EQ(code_of([&] { make_sampler("rondom", small_space()); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] {
              make_sampler("random", small_space(), {.settings = {{"x", 1}}});
            }),
            ErrorCode::invalid_argument);
}

TEST(TrialPlacesTest, KnowsAnyIds) {
  TrialPlaces places;
  const std::uint64_t ids[] = {0, 1, 7, 1'000'000, ~std::uint64_t{0}, 2, 70, 1000};
  std::uint32_t place = 0;
  for (const auto id : ids) EXPECT_TRUE(places.add(TrialId{id}, place++));
  for (const auto id : ids) EXPECT_FALSE(places.add(TrialId{id}, 99));
  for (std::uint32_t i = 0; i < place; ++i) EXPECT_EQ(places.find(TrialId{ids[i]}), i);
  for (const std::uint64_t other : {3, 8, 71, 999, 2'000'000})
    EXPECT_FALSE(places.find(TrialId{other}));
  places.remove(TrialId{7});
  places.remove(TrialId{1'000'000});
  places.remove(TrialId{3});
  EXPECT_FALSE(places.find(TrialId{7}));
  EXPECT_FALSE(places.find(TrialId{1'000'000}));
  EXPECT_TRUE(places.add(TrialId{7}, 5));
  // An id that was far away is found when the others have come as far.
  for (std::uint64_t id = 100; id < 1200; ++id)
    EXPECT_EQ(places.add(TrialId{id}, 1), id != 1000) << id;
  EXPECT_EQ(places.find(TrialId{1000}), 7U);
}

TEST(SamplerTest, ResultsThatAreNotFiniteCountAsFailures) {
  auto sampler = make_sampler("random", small_space());
  std::uint64_t next = 0;
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    sampler->ask(TrialId{next});
    sampler->tell(TrialId{next++}, Outcome::complete(value));
    EXPECT_EQ(sampler->trials().back().state, TrialState::failed);
  }
}

TEST(SamplerTest, StartingPointsComeFirst) {
  auto sampler = make_sampler("random", small_space(), {.points_to_evaluate = {Value{{"n", 3}}}});
  const auto point = sampler->ask(TrialId{0});
  EXPECT_EQ((*point)[sampler->space().index_of("n")], 3);
}

TEST(SamplerTest, MaximisedValuesAreTurnedRound) {
  auto sampler = make_sampler("random", small_space(), {.directions = {Direction::maximize}});
  sampler->ask(TrialId{0});
  sampler->tell(TrialId{0}, Outcome::complete(3.0));
  EXPECT_EQ(sampler->trials()[0].values[0], -3.0);
}

}  // namespace
}  // namespace kolo::search
