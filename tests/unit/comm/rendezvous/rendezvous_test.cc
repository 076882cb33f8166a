// Ranks that meet, wait in vain, die and come again.
#include <gmock/gmock.h>

#include <filesystem>
#include <future>
#include <numeric>

#include "comm/liveness.h"
#include "kolo/error.h"
#include "rendezvous_fixture.h"

namespace kolo::comm::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int> ranks(int size) {
  std::vector<int> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(
      std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}

TEST_F(RendezvousTest, GivesEveryMemberEveryContributionInOrder) {
  start(4);
  std::vector<std::future<std::vector<std::string>>> results;
  for (int rank = 0; rank < 4; ++rank)
    results.push_back(std::async(std::launch::async, [this, rank] {
      return client(rank)->allgather("k", {3, 1, 0, 2}, "from " + std::to_string(rank),
                                     Deadline::after(10s));
    }));
  for (auto& result : results)
    EXPECT_THAT(result.get(), ElementsAre("from 3", "from 1", "from 0", "from 2"));
  EXPECT_EQ(server_->open_meetings(), 0U);
  EXPECT_EQ(server_->joined().size(), 4U);
}

TEST_F(RendezvousTest, CarriesLargeAndEmptyAndBinaryContributions) {
  start(2);
  const std::string large(3 << 20, '\xff');
  auto other = std::async(std::launch::async, [&] {
    return client(1)->allgather("k", {0, 1}, std::string("\0x", 2), Deadline::after(10s));
  });
  auto first = client(0);
  EXPECT_THAT(first->allgather("k", {0, 1}, large, Deadline::after(10s)),
              ElementsAre(large, std::string("\0x", 2)));
  EXPECT_EQ(other.get().at(0), large);
  EXPECT_THAT(first->allgather("alone", {0}, "", Deadline::after(10s)), ElementsAre(""));
}

TEST_F(RendezvousTest, MeetingsOfSeveralThreadsDoNotWaitForEachOther) {
  start(2);
  auto a = client(0), b = client(1);
  // Rank 0 enters x then y, rank 1 y then x: with one connection each, both would wait for ever.
  auto x0 = std::async(std::launch::async, [&] {
    return a->allgather("x", {0, 1}, "x0", Deadline::after(10s));
  });
  ASSERT_TRUE(eventually([&] { return server_->open_meetings() == 1; }));
  auto y1 = std::async(std::launch::async, [&] {
    return b->allgather("y", {0, 1}, "y1", Deadline::after(10s));
  });
  ASSERT_TRUE(eventually([&] { return server_->open_meetings() == 2; }));
  EXPECT_THAT(a->allgather("y", {0, 1}, "y0", Deadline::after(10s)), ElementsAre("y0", "y1"));
  EXPECT_THAT(b->allgather("x", {0, 1}, "x1", Deadline::after(10s)), ElementsAre("x0", "x1"));
  EXPECT_THAT(x0.get(), ElementsAre("x0", "x1"));
  EXPECT_THAT(y1.get(), ElementsAre("y0", "y1"));
}

TEST_F(RendezvousTest, NamesThoseWhoDidNotCome) {
  start(4);
  auto first = client(0);
  try {
    first->allgather("k", ranks(4), "", Deadline::after(20ms));
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
    EXPECT_EQ(error.rank(), 1);
    EXPECT_THAT(error.what(), HasSubstr("ranks 1, 2, 3 did not arrive"));
  }
  EXPECT_EQ(server_->open_meetings(), 0U);
  // The connection is as good as before.
  EXPECT_THAT(first->allgather("k", {0}, "again", Deadline::after(10s)), ElementsAre("again"));
}

TEST_F(RendezvousTest, TellsThoseWhoWaitThatAMemberIsGone) {
  start(3);
  auto a = client(0), b = client(1);
  auto waiting = std::async(std::launch::async,
                            [&] { return a->allgather("k", ranks(3), "", Deadline::after(60s)); });
  ASSERT_TRUE(eventually([&] { return server_->open_meetings() == 1; }));
  server_->announce({2, "killed by signal 9"});
  try {
    waiting.get();
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::peer_lost);
    EXPECT_EQ(error.rank(), 2);
    EXPECT_THAT(error.what(), HasSubstr("killed by signal 9"));
  }
  // Whoever comes later is told at once; a meeting without the dead one goes on.
  EXPECT_THROW(b->allgather("k", ranks(3), "", Deadline::after(60s)), Error);
  auto other = std::async(std::launch::async, [&] {
    return a->allgather("m", {0, 1}, "a", Deadline::after(10s));
  });
  EXPECT_THAT(b->allgather("m", {0, 1}, "b", Deadline::after(10s)), ElementsAre("a", "b"));
}

TEST_F(RendezvousTest, BringsNewsToAllAlsoToThoseWhoComeLater) {
  start(3);
  auto early = client(0);
  server_->announce({2, "exited with status 3", DepartureKind::failed});
  auto news = wait_for_news(*early);
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news[0].rank, 2);
  EXPECT_EQ(news[0].reason, "exited with status 3");
  EXPECT_EQ(news[0].kind, DepartureKind::failed);
  auto late = client(1);
  news = wait_for_news(*late);
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news[0].rank, 2);
}

TEST_F(RendezvousTest, TheKindOfADepartureIsDataWhateverItsReasonSays) {
  for (const auto kind : {DepartureKind::unknown, DepartureKind::finished, DepartureKind::failed}) {
    const auto read = decode_departure(encode(Departure{1, "was killed, it is said", kind}));
    EXPECT_EQ(read.kind, kind);
    EXPECT_EQ(read.rank, 1);
    EXPECT_EQ(read.reason, "was killed, it is said");
  }
  // Of a later version: no more is known than that the rank is gone.
  const auto later = encode(Departure{1, "", static_cast<DepartureKind>(200)});
  EXPECT_EQ(decode_departure(later).kind, DepartureKind::unknown);
  EXPECT_EQ(departure_by_status(1, 0).kind, DepartureKind::finished);
  EXPECT_EQ(departure_by_status(1, 3 << 8).kind, DepartureKind::failed);
  EXPECT_EQ(departure_by_status(1, SIGKILL).reason, "was killed by signal 9 (Killed)");
}

TEST_F(RendezvousTest, LivenessHearsNewsWhileAMeetingWaits) {
  start(3);
  auto a = client(0);
  Liveness liveness(a);
  auto waiting = std::async(std::launch::async, [&] {
    return a->allgather("k", {0, 1}, "a", Deadline::after(10s));
  });
  ASSERT_TRUE(eventually([&] { return server_->open_meetings() == 1; }));
  server_->announce({2, "exited"});
  EXPECT_TRUE(eventually([&] { return liveness.departure_of(2).has_value(); }));
  EXPECT_THAT(client(1)->allgather("k", {0, 1}, "b", Deadline::after(10s)), ElementsAre("a", "b"));
  EXPECT_THAT(waiting.get(), ElementsAre("a", "b"));
}

TEST_F(RendezvousTest, ABrokenConnectionIsADepartureOnlyWhereNobodyElseTells) {
  ServerOptions options;
  options.broken_connection_is_departure = true;
  start(3, std::move(options));
  auto watcher = client(0);
  client(1).reset();  // says goodbye
  {
    // Proves itself and vanishes, as a killed process does.
    auto vanishing = client(2);
    const int copy = vanishing->news_fd();
    ::shutdown(copy, SHUT_RDWR);
  }
  auto news = wait_for_news(*watcher);
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news[0].rank, 2);
  EXPECT_EQ(news[0].reason, "connection lost");
  EXPECT_EQ(news[0].kind, DepartureKind::failed);
}

TEST_F(RendezvousTest, TheEndOfTheServerIsTold) {
  start(2);
  auto a = client(0), hosted = client(1, /*host_rank=*/0);
  server_.reset();
  pollfd poll{a->news_fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&poll, 1, 10'000), 1);
  EXPECT_THROW(a->take_news(), Error);
  EXPECT_THROW(a->allgather("k", {0, 1}, "", Deadline::after(10s)), Error);
  auto news = wait_for_news(*hosted);
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news[0].rank, 0);
  EXPECT_THROW(hosted->take_news(), Error);  // and not again, or the listener would spin
}

TEST_F(RendezvousTest, ComesAndGoesAThousandTimes) {
  start(2);
  auto once = [this](int rank, int turn) {
    auto met = client(rank)->allgather("world", {0, 1}, std::to_string(turn), Deadline::after(10s));
    EXPECT_THAT(met, ElementsAre(std::to_string(turn), std::to_string(turn)));
  };
  auto run = [&](int turns) {
    auto other = std::async(std::launch::async, [&] {
      for (int i = 0; i < turns; ++i) once(1, i);
    });
    for (int i = 0; i < turns; ++i) once(0, i);
    other.get();
  };
  run(10);
  ASSERT_TRUE(eventually([&] { return server_->connections() == 0; }));
  const std::size_t before = open_descriptors();
  run(1000);
  EXPECT_TRUE(eventually([&] { return server_->connections() == 0; }));
  EXPECT_EQ(server_->open_meetings(), 0U);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(RendezvousTest, RefusesAMeetingThatCannotBe) {
  start(2);
  auto a = client(0);
  for (const std::vector<int>& members :
       {std::vector<int>{}, {1}, {0, 0}, {0, 2}, {0, -1}, {0, 1, 2}}) {
    try {
      a->allgather("k", members, "", Deadline::after(10s));
      ADD_FAILURE() << "must throw for " << ::testing::PrintToString(members);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    }
  }
  EXPECT_EQ(server_->open_meetings(), 0U);
}

}  // namespace
}  // namespace kolo::comm::rendezvous
