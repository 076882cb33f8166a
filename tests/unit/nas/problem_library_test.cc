// Problems that come from shared libraries of users.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hps/problem/plugin.h"
#include "unit/nas/small_problem.h"

namespace kolo::nas {
namespace {

using testing::HasSubstr;

const std::string kLibrary = KOLO_TEST_NAS_LIBRARY;

TEST(ProblemLibrary, BringsProblemsAndSpaces) {
  const LoadedNaProblem loaded = load_na_problem(kLibrary + ":Problem");
  EXPECT_EQ(loaded.name, "libkolo_test_nas_problems");
  const hps::RunResult result = test::run_alpha(loaded.problem, {{"arch_seq", Value::List{9}}});
  ASSERT_FALSE(result.failed()) << result.failure;
  EXPECT_GT(result.objectives[0], 0.99);
  EXPECT_EQ(load_na_problem(kLibrary + ":Wide").problem.architectures()->size(), 2);
}

TEST(ProblemLibrary, BringsRunFunctions) {
  hps::RunningJob job(1, {{"arch_seq", Value::List{1}}}, {});
  const hps::RunResult result = hps::Plugin(kLibrary).run("half")(job);
  ASSERT_FALSE(result.failed()) << result.failure;
  EXPECT_NEAR(result.objectives[0], 0.5, 0.01);
}

TEST(ProblemLibrary, SaysWhatItHas) {
  EXPECT_THAT(test::error_of([] { (void)load_na_problem(kLibrary + ":Problm"); }),
              testing::AllOf(HasSubstr("Problem"), HasSubstr("Wide")));
  EXPECT_THAT(test::error_of([] { (void)load_na_problem("./libgone.so:Problem"); }),
              HasSubstr("libgone.so"));
}

}  // namespace
}  // namespace kolo::nas
