// `distributed` in forked ranks, against `alpha` in one process.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/files.h"
#include "base/json.h"
#include "kolo/context.h"
#include "support/process_ranks.h"
#include "unit/nas/small_problem.h"

namespace kolo::nas {
namespace {

using kolo::test::Outcome;
using kolo::test::ProcessRank;
using kolo::test::ProcessRanks;
using test::small_problem;

/// Each rank's answer as text, all of which ended well.
std::vector<std::string> answers_of(int count, const std::function<std::string()>& body) {
  ProcessRanks ranks({.host_of_rank = std::vector<int>(static_cast<std::size_t>(count), 0)},
                     [&](ProcessRank& me) {
                       init(me.options(std::chrono::seconds(30)));
                       std::string answer = body();
                       world().barrier();
                       shutdown();
                       return answer;
                     });
  std::vector<std::string> answers;
  for (const Outcome& outcome : ranks.finish()) {
    EXPECT_EQ(outcome.error, "");
    answers.push_back(outcome.result);
  }
  return answers;
}

/// In a process of its own: the parent must stay without threads, which libtorch makes.
std::string alone(const std::function<std::string()>& body) { return answers_of(1, body).front(); }

std::string text_of(const hps::RunResult& result) {
  if (result.failed()) return result.failure;
  return fmt::format("{:a} {}", result.objectives[0], result.metadata.at("ended_by").as_string());
}
double number_of(const std::string& text) { return std::stod(text); }

const Value kLargest{{"arch_seq", Value::List{9}}};

std::string run(NaRunFunction function, const NaProblem& problem, const Value& parameters,
                const std::filesystem::path& log_dir = {}) {
  hps::RunningJob job(1, parameters, log_dir, log_dir);
  return text_of(function(problem, job));
}

TEST(Distributed, IsAlphaWithTheSameGlobalBatch) {
  const std::string by_alpha = alone([] { return run(alpha, small_problem(6), kLargest); });
  for (const int count : {2, 4}) {
    const auto answers = answers_of(count, [count] {
      NaProblem problem = small_problem(6);
      problem.hyperparameters({{"batch_size", 24 / count}, {"lsr_learning_rate", false}});
      return run(distributed, problem, kLargest);
    });
    for (const auto& answer : answers) EXPECT_EQ(answer, answers[0]) << "the same on every rank";
    EXPECT_NEAR(number_of(answers[0]), number_of(by_alpha), 1e-5) << count << " ranks";
  }
}

TEST(Distributed, ScalesRateAndBatchByDefault) {
  TempDir dir;
  (void)answers_of(2, [&] {
    NaProblem problem = small_problem(7);
    return run(distributed, problem, kLargest, dir.path());
  });
  const auto history = parse_json(read_file(dir.path() / "save/history/1.json"), "history");
  const auto rates = history["learning_rate"].get<std::vector<double>>();
  // 240 samples, 2 ranks with 24 each: 5 steps an epoch; the last step of epoch e is at e + 4/5.
  for (std::size_t epoch = 0; epoch < 5; ++epoch)
    EXPECT_NEAR(rates[epoch], 0.02 + 0.02 * (static_cast<double>(epoch) + 0.8) / 5, 1e-12);
  EXPECT_NEAR(rates[6], 0.04, 1e-12);
  // One rank is a job, too, and has nothing to scale.
  EXPECT_EQ(alone([] { return run(distributed, small_problem(3), kLargest); }),
            alone([] { return run(alpha, small_problem(3), kLargest); }));
}

TEST(Distributed, SameRanksSameBits) {
  const auto body = [] { return run(distributed, small_problem(3), kLargest); };
  EXPECT_EQ(answers_of(2, body), answers_of(2, body));
}

TEST(Distributed, EndsOnAllRanksTogether) {
  auto answers = answers_of(2, [] {
    NaProblem problem = small_problem(1'000'000);
    problem.hyperparameters({{"time_limit", 0.3}});
    return run(distributed, problem, kLargest);
  });
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_NE(answers[0].find("time_limit"), std::string::npos) << answers[0];
  answers = answers_of(2, [] {
    NaProblem problem = small_problem(50);
    problem.hyperparameters({{"learning_rate", 0.0}, {"patience_EarlyStopping", 2}});
    return run(distributed, problem, kLargest);
  });
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_NE(answers[0].find("early_stopping"), std::string::npos) << answers[0];
  answers = answers_of(2, [] {
    NaProblem problem = small_problem(5);
    problem.hyperparameters({{"optimizer", "sgd"}, {"learning_rate", 1e30}});
    return run(distributed, problem, kLargest);
  });
  EXPECT_EQ(answers, (std::vector<std::string>{"F_nan", "F_nan"}));
  answers = answers_of(2, [] {
    return run(distributed, small_problem(), Value{{"arch_seq", Value::List{77}}}).substr(0, 7);
  });
  EXPECT_EQ(answers, (std::vector<std::string>{"F_build", "F_build"}));
}

TEST(Distributed, UsesAsManyRanksAsTheConfigurationSays) {
  const auto two = answers_of(2, [] { return run(distributed, small_problem(6), kLargest); });
  const auto two_of_three = answers_of(3, [] {
    Value parameters = kLargest;
    std::string all;
    // Another number in each evaluation, as a joint search has it.
    for (const int ranks : {2, 1, 2}) {
      parameters.as_dict()["ranks_per_node"] = ranks;
      all += run(distributed, small_problem(6), parameters) + "; ";
    }
    return all;
  });
  for (const auto& answer : two_of_three) EXPECT_EQ(answer, two_of_three[0]);
  const std::string one = alone([] { return run(distributed, small_problem(6), kLargest); });
  EXPECT_EQ(two_of_three[0], two[0] + "; " + one + "; " + two[0] + "; ");
}

TEST(Distributed, ResultsTellTheEffectiveBatchAndRate) {
  const auto answers = answers_of(2, [] {
    hps::RunningJob job(1, kLargest, {}, {});
    const auto result = distributed(small_problem(1), job);
    return fmt::format("{} {} {}", result.metadata.at("num_ranks").to_string(),
                       result.metadata.at("effective_batch_size").to_string(),
                       result.metadata.at("effective_learning_rate").to_string());
  });
  EXPECT_EQ(answers[0], "2 48 0.04");  // of 24 and 0.02 a rank
}

TEST(TfDistributed, ScalesOnlyWhatIsSaid) {
  const std::string by_alpha = alone([] { return run(alpha, small_problem(6), kLargest); });
  const auto plain = answers_of(2, [] { return run(tf_distributed, small_problem(6), kLargest); });
  EXPECT_NEAR(number_of(plain[0]), number_of(by_alpha), 1e-5);
  const auto scaled = answers_of(2, [] {
    NaProblem problem = small_problem(6);
    problem.hyperparameters({{"lsr_batch_size", true}});
    return run(tf_distributed, problem, kLargest);
  });
  const std::string doubled = alone([] {
    NaProblem problem = small_problem(6);
    problem.hyperparameters({{"batch_size", 48}});
    return run(alpha, problem, kLargest);
  });
  EXPECT_NEAR(number_of(scaled[0]), number_of(doubled), 1e-5);
}

}  // namespace
}  // namespace kolo::nas
