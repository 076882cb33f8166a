// What a database says of a space and its points may be damaged.
#include "tune/output/study_importance.h"

#include <gmock/gmock.h>

#include "base/errors.h"

namespace kolo::tune {
namespace {

using testing::HasSubstr;

TEST(StudyImportance, SaysWhatIsWrongWithAnOutline) {
  std::vector<std::string> outlines{"3", "[]", "{}", R"({"parameters":3})"};
  for (const char* parameter :
       {R"(3)", R"({"path":"x"})", R"({"path":"x","domain":"choice"})",
        R"-({"path":3,"domain":"uniform(0, 1)","choices":null})-",
        R"({"path":"x","domain":7,"choices":null})", R"({"path":"x","domain":"","choices":null})",
        R"({"path":"x","domain":"choice","choices":7})",
        R"({"path":"x","domain":"choice","choices":{"count":-1}})",
        R"({"path":"x","domain":"choice","choices":{"count":1e18}})",
        R"({"path":"x","domain":"choice","choices":{"count":18446744073709551615}})"})
    outlines.push_back(fmt::format(R"({{"parameters":[{}]}})", parameter));
  for (const auto& outline : outlines) {
    StudySpec spec;
    spec.outline = outline;
    EXPECT_THROW((void)parameters_of(spec), Error) << outline;
  }
}

TEST(StudyImportance, LaysOutSoManyChoicesOfAllParametersTogether) {
  std::string parameters;
  for (int i = 0; i < 4; ++i)
    parameters += fmt::format(R"({}{{"path":"p{}","domain":"choice","choices":{{"count":{}}}}})",
                              i == 0 ? "" : ",", i, i == 0 ? 1 : 4'000'000);
  StudySpec spec;
  spec.outline = R"({"parameters":[)" + parameters + "]}";
  try {
    (void)parameters_of(spec);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corruption);
    EXPECT_THAT(error.message(), HasSubstr("12000001 choices; 10000000 at most"));
  }
}

TEST(StudyImportance, LeavesOutPointsOfOtherSpacesAndKeepsTheOthersInBounds) {
  StudySpec spec;
  spec.space = R"({"c": {"choice": ["a", "b"]}, "x": {"uniform": [0, 1]}})";
  spec.objectives = {{"loss", search::Direction::minimize}};
  std::vector<store::TrialRecord> records;
  std::vector<TrialResult> trials;
  const auto add = [&](std::string point, double loss) {
    auto& record = records.emplace_back();
    record.number = std::ssize(records) - 1;
    record.point = std::move(point);
    trials.emplace_back().results = {Value{{"loss", loss}, {"training_iteration", 1}}};
  };
  for (int i = 0; i < 20; ++i) add(fmt::format("{},{}", i % 2, i / 20.0), i / 20.0);
  for (const char* odd :
       {"", "1", "0,0.5,1,2,3,4,5,6,7", "1e300,-1e300", "-5,2", "inf,inf", "nan,nan", "1e9,0.5"})
    add(odd, 0.5);
  for (const char* scheduler : {"fifo", "pbt"}) {
    spec.scheduler = scheduler;
    const auto shares = importance_of(spec, parameters_of(spec), records, trials);
    ASSERT_EQ(shares.size(), 2U);
    for (const auto& share : shares) EXPECT_TRUE(share.share >= 0 && share.share <= 1);
  }
}

}  // namespace
}  // namespace kolo::tune
