// What only one rank has survives that rank: weights after a kill and a join are those of a run
// that was left alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <fstream>
#include <regex>

#include "base/files.h"
#include "kolo_process.h"

namespace kolo::test {
namespace {

const std::regex kJoined(R"(process (\d+) is rank (\d) of 3 from step (\d+) on)");
const std::regex kAtWork("ten steps by 3 ranks");
const std::regex kResult(R"((\d+) steps, weights (-?[0-9.]+))");

/// The process of each rank of the newest whole group of three; empty if there is none past `least`
/// of them.
std::vector<pid_t> group_of_three(const std::string& out, std::size_t least) {
  std::vector<std::pair<int, pid_t>> told;
  for (std::sregex_iterator at(out.begin(), out.end(), kJoined), end; at != end; ++at)
    told.emplace_back(std::stoi((*at)[2]), static_cast<pid_t>(std::stol((*at)[1])));
  if (told.size() < 3 * least || told.size() % 3 != 0) return {};
  std::vector<pid_t> group(3);
  for (auto one = told.end() - 3; one != told.end(); ++one)
    group[static_cast<std::size_t>(one->first)] = one->second;
  return group;
}

class ElasticOwned : public testing::TestWithParam<const char*> {};

TEST_P(ElasticOwned, WeightsAreThoseOfAnUndisturbedRun) {
  TempDir dir;
  const std::string until = (dir.path() / "until").string();
  KoloProcess run({"run", "-np", "3", "--min-np", "1", "-H", "localhost:3",
                   "--blacklist-cooldown-range", "1,1", KOLO_OWNED_PROGRAM, GetParam(), "--until",
                   until, "--pause-ms", "5"});
  // Each rank once, when all three are there: what it had is with the next one. The last of them is
  // killed before the state is shared out again.
  std::size_t groups = 0;
  for (const std::size_t victim : {1, 0, 2}) {
    ++groups;
    std::vector<pid_t> group;
    ASSERT_TRUE(eventually([&] { return !(group = group_of_three(run.out(), groups)).empty(); }))
        << run.out() << run.err();
    const auto is_at_work = [&] {
      const std::string out = run.out();
      return std::distance(std::sregex_iterator(out.begin(), out.end(), kAtWork), {}) >=
             static_cast<std::ptrdiff_t>(groups);
    };
    ASSERT_TRUE(victim == 2 || eventually(is_at_work)) << run.out() << run.err();
    ::kill(group[victim], SIGKILL);
  }
  ASSERT_TRUE(eventually([&] { return !group_of_three(run.out(), groups + 1).empty(); }))
      << run.out() << run.err();
  std::ofstream(until) << "now\n";
  ASSERT_EQ(run.wait(), 0) << run.out() << run.err();
  std::smatch disturbed, alone;
  const std::string out = run.out();
  ASSERT_TRUE(std::regex_search(out, disturbed, kResult)) << out;

  KoloProcess left_alone(
      {"run", "-np", "3", KOLO_OWNED_PROGRAM, GetParam(), "--steps", disturbed[1]});
  ASSERT_EQ(left_alone.wait(), 0) << left_alone.err();
  const std::string other = left_alone.out();
  ASSERT_TRUE(std::regex_search(other, alone, kResult)) << other;
  EXPECT_EQ(alone[1], disturbed[1]);
  EXPECT_NEAR(std::stod(alone[2]), std::stod(disturbed[2]), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(How, ElasticOwned, testing::Values("shards", "top_k"),
                         [](const auto& how) { return std::string(how.param); });

}  // namespace
}  // namespace kolo::test
