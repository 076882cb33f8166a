#include "launch/elastic/roster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "base/files.h"
#include "kolo/error.h"
#include "launch/elastic/discovery.h"

namespace kolo::launch::elastic {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

template <class T>
std::vector<T> only(const Actions& actions) {
  std::vector<T> found;
  for (const auto& action : actions)
    if (const auto* one = std::get_if<T>(&action)) found.push_back(*one);
  return found;
}

Roster make_roster(RosterOptions options, std::optional<Cooldown> cooldown = std::nullopt) {
  options.start_timeout = 30s;
  options.elastic_timeout = 60s;
  return {options, HostPool(cooldown, [] { return 0.0; })};
}

/// Three workers on one host, in generation 1.
Roster three_at_work(RosterOptions options, std::optional<Cooldown> cooldown = std::nullopt) {
  Roster roster = make_roster(std::move(options), cooldown);
  EXPECT_EQ(only<StartWorker>(roster.hosts_changed({{"a", 3}}, 0s)).size(), 3U);
  EXPECT_TRUE(only<FormGroup>(roster.ready(0, {}, 0s)).empty());
  EXPECT_TRUE(only<FormGroup>(roster.ready(1, {}, 0s)).empty());
  EXPECT_EQ(only<FormGroup>(roster.ready(2, {}, 0s)).size(), 1U);
  return roster;
}

TEST(RosterTest, SurvivorsKeepTheirOrderInTheNextGroup) {
  Roster roster = three_at_work({.start_ranks = 3, .least_ranks = 2});
  EXPECT_EQ(only<AnnounceLoss>(roster.ended(1, 137, "was killed", 1s)).at(0).rank, 1);
  EXPECT_TRUE(roster.ready(2, {.left = 1, .blamed = 1}, 1s).empty());
  const auto formed = only<FormGroup>(roster.ready(0, {.left = 1, .blamed = 1}, 1s));
  ASSERT_EQ(formed.size(), 1U);
  EXPECT_EQ(formed[0].generation, 2U);
  EXPECT_THAT(formed[0].members, ElementsAre(0, 2));
}

TEST(RosterTest, TooFewRanksWithoutHopeEndTheJobAtOnce) {
  Roster roster = three_at_work({.start_ranks = 3, .least_ranks = 3});
  const auto ends = only<EndJob>(roster.ended(1, 137, "was killed", 1s));
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].status, 137);
  EXPECT_THAT(ends[0].reason, HasSubstr("3 ranks are needed (--min-np), but there are 2"));
}

TEST(RosterTest, TooFewRanksWaitForHostsAndThenSayWhatTheyWaitedFor) {
  Roster roster = three_at_work({.start_ranks = 3, .least_ranks = 3, .hosts_may_come = true});
  EXPECT_TRUE(only<EndJob>(roster.ended(1, 137, "was killed", 1s)).empty());
  EXPECT_TRUE(only<EndJob>(roster.tick(60s)).empty());
  const auto ends = only<EndJob>(roster.tick(61s));
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_THAT(ends[0].reason, HasSubstr("a (a worker failed there); no others came within 60 s"));
}

TEST(RosterTest, WorkersThatAllFailBeforeTheyJoinEndTheJobAtOnce) {
  Roster roster = make_roster({.start_ranks = 1, .least_ranks = 1, .hosts_may_come = true});
  EXPECT_EQ(only<StartWorker>(roster.hosts_changed({{"a", 1}, {"b", 1}}, 0s)).size(), 2U);
  EXPECT_TRUE(only<EndJob>(roster.ended(0, 127, "exited with status 127", 1s)).empty());
  const auto ends = only<EndJob>(roster.ended(1, 127, "exited with status 127", 1s));
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].status, 127);
  EXPECT_THAT(ends[0].reason, HasSubstr("every worker has failed before it joined the job (the "
                                        "last: worker 1 on b exited with status 127)"));
}

TEST(RosterTest, HostsThatAreTriedAgainBeforeTheFirstGroupAreNotTriedForEver) {
  Roster roster = make_roster({.start_ranks = 1, .least_ranks = 1, .hosts_may_come = true},
                              Cooldown{.low = 10s, .high = 10s});
  EXPECT_EQ(only<StartWorker>(roster.hosts_changed({{"a", 1}}, 0s)).size(), 1U);
  int worker = 0;
  std::vector<EndJob> ends;
  for (Time now = 1s; ends.empty() && now < 200s; now = roster.next_tick().value_or(now + 1s)) {
    (void)roster.tick(now);
    ends = only<EndJob>(roster.ended(worker++, 1, "exited with status 1", now));
  }
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(worker, 7);  // at 1, 11, … 61 seconds
  EXPECT_THAT(ends[0].reason, HasSubstr("no others came within 60 s (--elastic-timeout)"));
}

TEST(RosterTest, AHostIsUsedAgainAfterItsCooldown) {
  Roster roster =
      three_at_work({.start_ranks = 3, .least_ranks = 2}, Cooldown{.low = 10s, .high = 100s});
  EXPECT_TRUE(only<StartWorker>(roster.ended(1, 137, "was killed", 1s)).empty());
  EXPECT_EQ(roster.next_tick(), Time(11s));
  const auto starts = only<StartWorker>(roster.tick(11s));
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].worker, 3);
}

TEST(RosterTest, AHostWithFewerSlotsLosesTheWorkersOfTheOthers) {
  Roster roster = three_at_work({.start_ranks = 3, .least_ranks = 1, .hosts_may_come = true});
  const Actions actions = roster.hosts_changed({{"a", 1}}, 1s);
  std::vector<int> retired;
  for (const auto& action : only<RetireWorker>(actions)) retired.push_back(action.worker);
  EXPECT_THAT(retired, ElementsAre(1, 2));
  EXPECT_THAT(only<Say>(actions).at(0).text, HasSubstr("host a has fewer slots; worker 1 leaves"));
  EXPECT_TRUE(only<RetireWorker>(roster.hosts_changed({{"a", 1}}, 2s)).empty());
}

TEST(RosterTest, ANewWorkerLetsTheGroupFinishItsStep) {
  Roster roster = three_at_work({.start_ranks = 3, .least_ranks = 2, .hosts_may_come = true});
  EXPECT_EQ(only<StartWorker>(roster.hosts_changed({{"a", 3}, {"b", 1}}, 1s)).size(), 1U);
  const auto requests = only<RequestChange>(roster.ready(3, {}, 2s));
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].generation, 1U);
  EXPECT_TRUE(only<RequestChange>(roster.tick(3s)).empty());
}

TEST(RosterTest, WhoWasGivenUpAndDoesNotAnswerIsKilled) {
  Roster roster = three_at_work({.start_ranks = 3, .least_ranks = 2});
  (void)roster.ready(0, {.left = 1, .blamed = 1}, 1s);
  (void)roster.ready(2, {.left = 1, .blamed = 1}, 1s);
  EXPECT_TRUE(only<KillWorker>(roster.tick(30s)).empty());
  EXPECT_EQ(only<KillWorker>(roster.tick(31s)).at(0).worker, 1);
}

// One is stopped, and another is killed before anybody has missed the first.
TEST(RosterTest, WhoIsMuteWhenTheGroupIsToEndIsKilled) {
  Roster roster = three_at_work({.start_ranks = 3, .least_ranks = 1});
  EXPECT_EQ(roster.next_tick(), std::nullopt);  // nobody waits for it
  (void)roster.ended(2, 137, "was killed", 100s);
  for (Time now = 105s; now < 130s; now += 5s) (void)roster.alive(0, now);
  EXPECT_TRUE(only<KillWorker>(roster.tick(129s)).empty());
  const Actions actions = roster.tick(130s);
  ASSERT_EQ(only<KillWorker>(actions).size(), 1U);
  EXPECT_EQ(only<KillWorker>(actions)[0].worker, 1);
  EXPECT_THAT(only<Say>(actions).at(0).text, HasSubstr("no sign of life for 30 s"));
  EXPECT_TRUE(only<KillWorker>(roster.tick(131s)).empty());
}

// A worker gives up when it has not been told to wait for --elastic-timeout, and that is about
// hosts: a rank may take longer to start.
TEST(RosterTest, WhoeverIsReadyIsToldToWaitForOneThatStarts) {
  for (const bool is_first_group : {true, false}) {
    Roster roster = make_roster({.start_ranks = 2, .least_ranks = 2, .hosts_may_come = true});
    (void)roster.hosts_changed({{"a", 2}}, 0s);
    (void)roster.ready(0, {}, 0s);
    if (!is_first_group) {
      (void)roster.ready(1, {}, 0s);
      (void)roster.ended(1, 137, "was killed", 0s);
      (void)roster.ready(0, {.left = 1, .blamed = 1}, 0s);
      EXPECT_TRUE(only<TellToWait>(roster.alive(0, 0s)).empty());  // there is nobody to wait for
      EXPECT_EQ(only<StartWorker>(roster.hosts_changed({{"a", 2}, {"b", 1}}, 0s)).size(), 1U);
    }
    EXPECT_EQ(only<TellToWait>(roster.alive(0, 299s)).size(), 1U);
    EXPECT_TRUE(only<TellToWait>(roster.alive(0, 301s)).empty());
  }
}

TEST(RosterTest, TheOnlyMemberMayTakeLongButNotBeMute) {
  for (const bool is_mute : {false, true}) {
    Roster roster = make_roster({.start_ranks = 1, .least_ranks = 1, .hosts_may_come = true});
    (void)roster.hosts_changed({{"a", 1}}, 0s);
    EXPECT_EQ(only<FormGroup>(roster.ready(0, {}, 0s)).size(), 1U);
    (void)roster.hosts_changed({{"a", 2}}, 1s);
    EXPECT_EQ(only<RequestChange>(roster.ready(1, {}, 2s)).size(), 1U);
    std::size_t killed = 0;
    for (Time now = 5s; now < 5000s; now += 5s) {
      if (!is_mute) {
        EXPECT_TRUE(roster.alive(0, now).empty());
      }
      // Meanwhile the newcomer is told that the launcher has not forgotten it.
      if (killed == 0) {
        EXPECT_EQ(only<TellToWait>(roster.alive(1, now)).size(), 1U);
      }
      killed += only<KillWorker>(roster.tick(now)).size();
    }
    EXPECT_EQ(killed, is_mute ? 1U : 0U);
  }
}

TEST(RosterTest, WhoComesMuchLaterThanTheOthersIsKilledThoughItLives) {
  Roster roster = three_at_work({.start_ranks = 3, .least_ranks = 1, .group_timeout = 100s});
  (void)roster.ended(2, 137, "was killed", 1s);
  (void)roster.ready(0, {.left = 1, .blamed = 2}, 10s);
  const auto killed_at = [&](Time now) {
    (void)roster.alive(1, now);
    return only<KillWorker>(roster.tick(now)).size();
  };
  EXPECT_EQ(killed_at(139s), 0U);
  EXPECT_EQ(killed_at(140s), 1U);
}

// A program may wait longer than its environment says, and write a commit for that long.
TEST(RosterTest, NobodyIsKilledBeforeTheTimeoutThatWorkersHaveTold) {
  for (const Time told : {Time(1000s), Time(20s)}) {
    Roster roster = make_roster({.start_ranks = 3, .least_ranks = 1, .group_timeout = 100s});
    (void)roster.hosts_changed({{"a", 3}}, 0s);
    for (const int worker : {0, 1, 2}) {
      roster.timeout(worker, told);
      (void)roster.ready(worker, {}, 0s);
    }
    (void)roster.ended(2, 137, "was killed", 1s);
    (void)roster.ready(0, {.left = 1, .blamed = 2}, 10s);
    Time killed_at{0};
    for (Time now = 10s; now < 5000s && killed_at == Time{0}; now += 5s) {
      (void)roster.alive(1, now);
      if (!only<KillWorker>(roster.tick(now)).empty()) killed_at = now;
    }
    EXPECT_EQ(killed_at, Time(10s) + told + 30s);
  }
}

TEST(RosterTest, TheResetLimitEndsTheJob) {
  Roster roster = three_at_work({.start_ranks = 3, .least_ranks = 1, .reset_limit = 0});
  (void)roster.ended(1, 137, "was killed", 1s);
  (void)roster.ready(0, {.left = 1}, 1s);
  EXPECT_THAT(only<EndJob>(roster.ready(2, {.left = 1}, 1s)).at(0).reason,
              HasSubstr("the group has changed 0 times (--reset-limit)"));
}

TEST(RosterTest, WhatAWorkerSaysOfAnOlderGroupIsNotHeard) {
  Roster roster = three_at_work({.start_ranks = 3, .least_ranks = 1});
  for (const int worker : {0, 1, 2}) (void)roster.ready(worker, {.left = 1}, 1s);  // generation 2
  EXPECT_TRUE(roster.ready(0, {.left = 1}, 1s).empty());
  EXPECT_TRUE(roster.finished(0, {.generation = 1}, 1s).empty());
}

TEST(RosterTest, WhoComesLateToTheEndIsToldThatTheWorkIsDone) {
  Roster roster = three_at_work({.start_ranks = 3, .least_ranks = 1});
  (void)roster.finished(0, {.generation = 1}, 1s);
  EXPECT_EQ(only<TellOver>(roster.ready(1, {.left = 1}, 1s)).at(0).worker, 1);
}

TEST(DiscoveryTest, ListsAreParsedAndAHostThatIsNamedTwiceCountsOnce) {
  std::string warning;
  const auto hosts = parse_discovered("a:4\n\n# none\nb\n c slots=2\na:9\n", 3,
                                      [&](const std::string& text) { warning = text; });
  EXPECT_THAT(hosts, ElementsAre(Host{"a", 4}, Host{"b", 3}, Host{"c", 2}));
  EXPECT_THAT(warning, HasSubstr("host a is named twice"));
  EXPECT_TRUE(parse_discovered("", 1, [](const std::string&) {}).empty());
  try {
    (void)parse_discovered("a\n<html>\n", 1, [](const std::string&) {});
    ADD_FAILURE() << "not a host";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), StartsWith("line 2: '<html>': "));
  }
}

/// Calls the script this many times. What it says on standard error meanwhile.
std::string errors_of_calls(const std::string& script, int calls) {
  TempDir dir;
  const auto count = dir.path() / "calls";
  testing::internal::CaptureStderr();
  Discovery discovery(
      {.script = fmt::format("cd {} && echo >>calls; {}", dir.path().string(), script),
       .interval = 1ms},
      [](const std::string&) {});
  const Deadline deadline = Deadline::after(20s);
  const auto is_done = [&] {
    return std::filesystem::exists(count) &&
           std::filesystem::file_size(count) > static_cast<std::uintmax_t>(calls);
  };
  while (!is_done() && !deadline.passed()) {
    (void)discovery.work();
    pollfd poll{discovery.fd(), POLLIN, 0};
    ::poll(&poll, 1, discovery.next().poll_timeout_ms());
  }
  EXPECT_TRUE(is_done());
  return testing::internal::GetCapturedStderr();
}

// An elastic job on a cluster that was ended asks for it once a second.
TEST(DiscoveryTest, WhatACallSaysAgainAndAgainIsPassedOnOnce) {
  EXPECT_EQ(errors_of_calls("echo trouble >&2; exit 1", 4), "trouble\n");
  EXPECT_EQ(errors_of_calls("wc -l <calls >&2; exit 1", 2), "1\n2\n");
}

// A process of the script in the background, as of ssh with ControlPersist, keeps its errors open.
TEST(DiscoveryTest, ACallEndsThoughSomebodyKeepsItsErrorsOpen) {
  EXPECT_EQ(errors_of_calls("sleep 60 >/dev/null & echo said >&2", 2), "said\n");
}

}  // namespace
}  // namespace kolo::launch::elastic
