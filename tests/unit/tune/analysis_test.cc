// Every member of Analysis, on a study whose results are known.
#include "kolo/tune/analysis.h"

#include "unit/tune/study_fixture.h"

namespace kolo::test {
namespace {

using namespace tune;

class TuneAnalysis : public StudyTest {
 protected:
  Analysis study(bool with_metric = true) {
    auto how = with_metric ? minimize("known", "loss") : options("unknown");
    how.config = {{"x", grid_search({3, 1, 2})}, {"nested", Spec{{"y", 7}}}};
    how.total_resources = Resources{.cpu = 1};
    return tune::run(
        [](const Config& config, Session& session) {
          const double x = config.at_path("x").as_number();
          for (int i = 1; i <= 3; ++i) {
            if (i == 2)
              session.save_checkpoint([](const std::filesystem::path& directory) {
                write_file_atomically(directory / "state", "2");
              });
            session.report({{"loss", x + (i == 2 ? -0.5 : 0.0)}, {"eval", {{"acc", x * i}}}});
          }
        },
        how);
  }
};

TEST_F(TuneAnalysis, HasEveryMember) {
  const Analysis analysis = study();
  EXPECT_EQ(analysis.name(), "known");
  EXPECT_EQ(analysis.directory(), scratch_.path() / "known");
  EXPECT_EQ(analysis.best_trial().number, 1);
  EXPECT_EQ(analysis.best_config().at_path("x").as_integer(), 1);
  EXPECT_EQ(analysis.best_config().at_path("nested/y").as_integer(), 7);
  EXPECT_TRUE(std::filesystem::exists(analysis.best_logdir() / "result.json"));
  EXPECT_EQ(read_file(analysis.best_checkpoint() / "state"), "2");
  EXPECT_EQ(analysis.best_result().at_path("eval/acc").as_number(), 3);
  const Table row = analysis.best_result_df();
  ASSERT_EQ(row.rows.size(), 1U);
  EXPECT_THAT(row.columns, testing::IsSupersetOf({"loss", "eval.acc", "config.x", "config.nested.y",
                                                  "training_iteration", "trial_id"}));
  EXPECT_EQ(analysis.best_dataframe().rows.size(), 3U);
  EXPECT_EQ(analysis.get_best_trial("eval/acc", "max").number, 0);
  EXPECT_EQ(analysis.get_best_config("eval/acc", "max").at_path("x").as_integer(), 3);
  EXPECT_EQ(analysis.get_best_logdir("loss", "max", "avg"), analysis.trials()[0].directory);
  const auto paths = analysis.get_trial_checkpoints_paths(analysis.best_trial(), "loss");
  ASSERT_EQ(paths.size(), 1U);
  EXPECT_EQ(paths[0].second, 0.5);
  EXPECT_EQ(analysis.results().size(), 3U);
  EXPECT_EQ(analysis.trial_dataframes().size(), 3U);
  EXPECT_EQ(analysis.get_all_configs(true).begin()->second.as_dict().count("config/x"), 1U);
  EXPECT_EQ(analysis.pareto_front().size(), 1U);
  EXPECT_TRUE(analysis.errors().empty());
  EXPECT_EQ(analysis.stats().at_path("reports").as_integer(), 9);
  EXPECT_EQ(analysis.stats().at_path("states/TERMINATED").as_integer(), 3);
}

TEST_F(TuneAnalysis, TablesHaveARowPerTrial) {
  const Analysis analysis = study();
  const auto column = [](const Table& table, const std::string& name) {
    const auto at = std::find(table.columns.begin(), table.columns.end(), name);
    std::vector<double> values;
    for (const auto& row : table.rows)
      values.push_back(row[static_cast<std::size_t>(at - table.columns.begin())].as_number());
    return values;
  };
  EXPECT_THAT(column(analysis.dataframe(), "loss"), testing::ElementsAre(3, 1, 2));
  EXPECT_THAT(column(analysis.dataframe("loss", "min"), "loss"),
              testing::ElementsAre(2.5, .5, 1.5));
  EXPECT_THAT(column(analysis.results_df(), "config/x"), testing::ElementsAre(3, 1, 2));
  const std::string csv = analysis.dataframe().to_csv();
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
  EXPECT_THAT(analysis.dataframe().to_json(), testing::HasSubstr("\"config/nested/y\":7"));
}

TEST_F(TuneAnalysis, WithoutAMetricItSaysWhatThereIs) {
  const Analysis analysis = study(false);
  const Error error = refusal([&] { static_cast<void>(analysis.best_config()); });
  EXPECT_EQ(error.code(), ErrorCode::failed_precondition);
  EXPECT_THAT(error.what(), testing::HasSubstr("eval/acc, loss"));
  EXPECT_EQ(analysis.get_best_config("loss", "min").at_path("x").as_integer(), 1);
  EXPECT_EQ(refusal([&] { static_cast<void>(analysis.get_best_config("los", "min")); }).code(),
            ErrorCode::not_found);
  EXPECT_EQ(refusal([&] { static_cast<void>(analysis.get_best_config("loss", "low")); }).code(),
            ErrorCode::invalid_argument);
}

TEST(Table, QuotesWhatCommaSeparatedValuesMust) {
  const Table table{{"a", "b,c"}, {{Value("x \"y\""), Value()}, {Value(1.5), Value("l\nm")}}};
  EXPECT_EQ(table.to_csv(), "a,\"b,c\"\n\"x \"\"y\"\"\",\n1.5,\"l\nm\"\n");
}

}  // namespace
}  // namespace kolo::test
