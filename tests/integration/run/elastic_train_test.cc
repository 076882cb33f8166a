// Training whose ranks are killed, leave and come at random, and its weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>

#include "base/files.h"
#include "kolo/random.h"
#include "kolo_process.h"

namespace kolo::test {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 3;

struct Group {
  int size = 0;
  std::vector<pid_t> processes;  // by rank
};

/// The groups that have told of themselves completely, oldest first.
std::vector<Group> groups_of(const std::string& out) {
  static const std::regex line(R"(process (\d+) is rank (\d+) of (\d+) from)");
  std::vector<Group> groups, open;
  for (std::sregex_iterator at(out.begin(), out.end(), line), end; at != end; ++at) {
    const pid_t process = static_cast<pid_t>(std::stol((*at)[1]));
    const std::size_t rank = std::stoul((*at)[2]);
    const int size = std::stoi((*at)[3]);
    // A group whose rank has told already is another one.
    auto mine = std::find_if(open.begin(), open.end(), [&](const Group& group) {
      return group.size == size && group.processes[rank] == 0;
    });
    if (mine == open.end())
      mine = open.insert(open.end(), {size, std::vector<pid_t>(static_cast<std::size_t>(size))});
    mine->processes[rank] = process;
    if (std::count(mine->processes.begin(), mine->processes.end(), 0) == 0) {
      groups.push_back(*mine);
      open.clear();  // what is older will not be complete any more
    }
  }
  return groups;
}

/// How many misfortunes; a longer run by KOLO_TEST_KILLS.
int kills() {
  const char* text = std::getenv("KOLO_TEST_KILLS");
  return text != nullptr ? std::atoi(text) : 2;
}

/// One by one, each when all ranks are there: kill, or ask to go. The host gets new ranks a moment
/// later, so that each is followed by a join.
void disturb(KoloProcess& run, Random& random) {
  std::size_t seen = 0;  // groups
  const auto full_group = [&]() -> std::vector<pid_t> {
    std::vector<pid_t> processes;
    EXPECT_TRUE(eventually([&] {
      const auto groups = groups_of(run.out());
      if (groups.size() <= seen || groups.back().size != kRanks) return false;
      seen = groups.size();
      processes = groups.back().processes;
      return true;
    })) << run.out()
        << run.err();
    return processes;
  };
  for (int i = 0; i < kills(); ++i) {
    const auto processes = full_group();
    ASSERT_EQ(processes.size(), static_cast<std::size_t>(kRanks)) << "disturbance " << i;
    ::kill(processes[random.below(kRanks)], SIGKILL);
    if (random.below(4) == 0) ::kill(processes[random.below(kRanks)], SIGKILL);  // perhaps another
  }
  (void)full_group();
}

/// A run that is disturbed, and then one that is not, for as many epochs: both must end with a line
/// that fits `result`, and with the same one.
void expect_same_result(const std::vector<std::string>& program, const std::string& result) {
  TempDir dir;
  const std::string until = (dir.path() / "until").string();
  const auto with_program = [&](std::vector<std::string> words,
                                const std::vector<std::string>& options) {
    words.insert(words.end(), program.begin(), program.end());
    words.insert(words.end(), options.begin(), options.end());
    return words;
  };
  KoloProcess run(with_program({"run", "-np", std::to_string(kRanks), "--min-np", "1", "-H",
                                "localhost:3", "--blacklist-cooldown-range", "1,1"},
                               {"--until", until, "--pause-ms", "5"}));
  Random random(7);
  disturb(run, random);
  std::ofstream(until) << "now\n";
  ASSERT_EQ(run.wait(), 0) << run.out() << run.err();

  std::smatch found;
  const std::string out = run.out();
  ASSERT_TRUE(std::regex_search(out, found, std::regex(result))) << out;
  KoloProcess alone(with_program({"run", "-np", "1"}, {"--epochs", found[1]}));
  EXPECT_EQ(alone.wait(kPatience * std::max(1, kills() / 10)), 0) << alone.err();
  EXPECT_THAT(alone.out(), HasSubstr(found.str()));
}

TEST(ElasticTrainTest, WeightsOfALoopAreThoseOfAnUndisturbedRun) {
  // Those of Fashion-MNIST take longer: KOLO_TEST_DATA=fashion.
  const char* data = std::getenv("KOLO_TEST_DATA");
  expect_same_result({KOLO_LOOP_PROGRAM, "--data", data != nullptr ? data : "digits"},
                     R"((\d+) epochs, every sample once in each, weights [0-9a-f]{16})");
}

TEST(ElasticTrainTest, WeightsAndMetricsOfATrainerAreThoseOfAnUndisturbedRun) {
  expect_same_result({KOLO_TRAINER_PROGRAM}, R"((\d+) epochs, history and weights [0-9a-f]{16})");
}

}  // namespace
}  // namespace kolo::test
