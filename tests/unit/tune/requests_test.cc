// What people ask of a study while it runs.
#include <atomic>
#include <thread>

#include "tune/study/study.h"
#include "tune/study/study_requests.h"
#include "tune/study/study_spec.h"
#include "unit/tune/study_fixture.h"

namespace kolo::test {
namespace {

using namespace tune;
using testing::HasSubstr;

class TuneRequests : public StudyTest {
 protected:
  /// Runs a study whose first trial does this, by a connection of its own, and then waits until the
  /// controller has taken every request.
  Analysis run_asking(
      const Options& how,
      const std::function<void(store::StudyStore&, const store::StudyRecord&)>& ask) {
    std::atomic<bool> has_asked{false};
    return tune::run(
        [&](const Config& config, Session& session) {
          if (!has_asked.exchange(true)) {
            const auto database = store::open_database(storage_url(how));
            store::StudyStore store(*database);
            const auto study = store.at(how.name);
            ask(store, study);
            while (!store.requests(study.id).empty())
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
          session.report({{"loss", config.at_path("x").as_number()}});
        },
        how);
  }
  [[nodiscard]] Options small(const std::string& name, const std::string& search) const {
    auto how = minimize(name, "loss");
    how.num_samples = 2;
    how.total_resources = Resources{.cpu = 1};
    how.search_alg.name = search;
    how.config = {{"x", uniform(0, 1)}};
    how.loggers = {};
    return how;
  }
};

TEST_F(TuneRequests, TrialsAreAddedWhileItRuns) {
  for (const char* search : {"", "random", "tpe"}) {
    auto how = small(fmt::format("grow{}", search), search);
    const auto grown =
        run_asking(how, [](store::StudyStore& store, const store::StudyRecord& study) {
          request_trials(store, study, 3);
          request_trials(store, study, 1);
        });
    EXPECT_EQ(grown.trials().size(), 6U) << search;
    const auto database = store::open_database(storage_url(how));
    store::StudyStore store(*database);
    EXPECT_EQ(StudySpec::from_json(store.at(how.name).spec).num_samples, 6) << search;
    if (std::string(search) == "tpe") continue;  // it plans for the number of trials
    // The same trials as of a study that was to have as many from the beginning.
    how.name += "-whole";
    how.num_samples = 6;
    const auto whole = run_asking(how, [](auto&, auto&) {});
    for (std::size_t i = 0; i < 6; ++i)
      EXPECT_EQ(grown.trials()[i].config, whole.trials()[i].config) << search << " " << i;
  }
}

TEST_F(TuneRequests, AGridAndAStudyWithoutAnEndTakeNoMore) {
  auto how = small("grid", "");
  how.config = {{"x", grid_search({1, 2})}};
  std::string why;
  const auto ask = [&](store::StudyStore& store, const store::StudyRecord& study) {
    why = refusal([&] { request_trials(store, study, 3); }).message();
  };
  EXPECT_EQ(run_asking(how, ask).trials().size(), 4U);
  EXPECT_THAT(why, HasSubstr("tries every combination of a grid"));
  how = small("endless", "random");
  how.num_samples = -1;
  how.time_budget = std::chrono::milliseconds(100);
  run_asking(how, ask);
  EXPECT_THAT(why, HasSubstr("has no end"));
}

TEST(TuneRequestKinds, OnlyWholeCountsAdd) {
  EXPECT_EQ(added_by_request("add 5"), 5);
  for (const char* kind : {"stop", "add", "add ", "add 0", "add -1", "add 5x", "add 99999999999"})
    EXPECT_FALSE(added_by_request(kind)) << kind;
}

}  // namespace
}  // namespace kolo::test
