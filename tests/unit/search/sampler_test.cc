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
