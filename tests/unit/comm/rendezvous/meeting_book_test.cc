// The book-keeping of meetings, with a given clock.
#include "comm/rendezvous/meeting_book.h"

#include <gmock/gmock.h>

namespace kolo::comm::rendezvous {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr MeetingBook::Time kNow{};

Meet request(std::string key, std::vector<int> members, std::string mine = "",
             std::chrono::milliseconds patience = 10s) {
  return {std::move(key), std::move(members), std::move(mine), patience};
}

Frame parse(const MeetingBook::Reply& reply) {
  FrameParser parser(kReplyLimit);
  parser.feed(*reply.frame);
  return *parser.next();
}
Failure failure_of(const MeetingBook::Reply& reply) { return decode_failure(parse(reply).payload); }

TEST(MeetingBookTest, AKeyCanBeUsedAgainOnceItsMeetingIsOver) {
  MeetingBook book(2);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_TRUE(book.come(1, 0, request("k", {0, 1}, "a"), kNow).empty());
    EXPECT_EQ(book.open_meetings(), 1U);
    EXPECT_EQ(book.come(2, 1, request("k", {0, 1}, "b"), kNow).size(), 2U);
    EXPECT_EQ(book.open_meetings(), 0U);
  }
}

TEST(MeetingBookTest, TheSameKeyWithOtherMembersIsAnotherMeeting) {
  MeetingBook book(4);
  EXPECT_TRUE(book.come(1, 0, request("k", {0, 1}), kNow).empty());
  EXPECT_TRUE(book.come(2, 2, request("k", {2, 3}), kNow).empty());
  EXPECT_EQ(book.open_meetings(), 2U);
  EXPECT_EQ(book.come(3, 3, request("k", {2, 3}), kNow).size(), 2U);
}

TEST(MeetingBookTest, WhoHangsUpTakesHisContributionBack) {
  MeetingBook book(2);
  book.come(1, 0, request("k", {0, 1}, "old"), kNow);
  book.leave(1);
  EXPECT_EQ(book.open_meetings(), 0U);
  EXPECT_TRUE(book.come(2, 1, request("k", {0, 1}), kNow).empty());
  EXPECT_EQ(book.come(3, 0, request("k", {0, 1}, "new"), kNow).size(), 2U);
}

TEST(MeetingBookTest, ARankThatComesAgainReplacesItself) {
  MeetingBook book(2);
  book.come(1, 0, request("k", {0, 1}, "old"), kNow);
  auto replies = book.come(2, 0, request("k", {0, 1}, "new"), kNow);
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].to, 1U);
  EXPECT_EQ(failure_of(replies[0]).code, ErrorCode::cancelled);
  replies = book.come(3, 1, request("k", {0, 1}, "b"), kNow);
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(decode_met(parse(replies[0]).payload), (std::vector<std::string>{"new", "b"}));
}

TEST(MeetingBookTest, PatienceIsEachOnesOwn) {
  MeetingBook book(3);
  book.come(1, 0, request("k", {0, 1, 2}, "", 1s), kNow);
  book.come(2, 1, request("k", {0, 1, 2}, "", 3s), kNow);
  EXPECT_EQ(book.next_expiry(), kNow + 1s);
  EXPECT_TRUE(book.expire(kNow + 999ms).empty());
  auto replies = book.expire(kNow + 1s);
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].to, 1U);
  EXPECT_THAT(failure_of(replies[0]).text, HasSubstr("rank 2 did not arrive"));
  EXPECT_EQ(book.next_expiry(), kNow + 3s);
  replies = book.expire(kNow + 4s);
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_THAT(failure_of(replies[0]).text, HasSubstr("ranks 0, 2 did not arrive"));
  EXPECT_EQ(book.open_meetings(), 0U);
  EXPECT_EQ(book.next_expiry(), std::nullopt);
}

TEST(MeetingBookTest, OnlyMeetingsOfTheDepartedFail) {
  MeetingBook book(4);
  book.come(1, 0, request("a", {0, 1, 2}), kNow);
  book.come(2, 1, request("a", {0, 1, 2}), kNow);
  book.come(3, 3, request("b", {0, 3}), kNow);
  MeetingBook::Replies replies;
  EXPECT_TRUE(book.depart({2, "gone"}, replies));
  EXPECT_EQ(replies.size(), 2U);
  EXPECT_EQ(failure_of(replies[0]).rank, 2);
  EXPECT_EQ(book.open_meetings(), 1U);
  replies.clear();
  EXPECT_FALSE(book.depart({2, "again"}, replies));
  EXPECT_TRUE(replies.empty());
  EXPECT_EQ(book.departures().at(0).reason, "gone");
}

TEST(MeetingBookTest, AMeetingFailsAlsoWhenTheDepartedHadCome) {
  MeetingBook book(3);
  book.come(1, 0, request("a", {0, 1, 2}), kNow);
  book.come(2, 1, request("a", {0, 1, 2}), kNow);
  MeetingBook::Replies replies;
  book.depart({1, "gone"}, replies);
  EXPECT_EQ(replies.size(), 2U);
  EXPECT_EQ(book.open_meetings(), 0U);
}

TEST(MeetingBookTest, ListsNotMoreThanOneCanRead) {
  std::vector<int> members(100);
  for (int i = 0; i < 100; ++i) members[static_cast<std::size_t>(i)] = i;
  MeetingBook book(100);
  book.come(1, 0, request("a", members, "", 1s), kNow);
  EXPECT_THAT(failure_of(book.expire(kNow + 2s).at(0)).text,
              HasSubstr("ranks 1, 2, 3, 4, 5, 6, 7, 8 and 91 more did not arrive"));
}

}  // namespace
}  // namespace kolo::comm::rendezvous
