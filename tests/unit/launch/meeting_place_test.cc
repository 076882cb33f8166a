#include "launch/meeting_place.h"

#include <gmock/gmock.h>

#include "kolo/error.h"

namespace kolo::launch {
namespace {

using ::testing::ElementsAre;

TEST(MeetingPlaceTest, LoopbackWhenAllRanksAreLocal) {
  auto chosen = choose_meeting_addresses({{"localhost", false, ""}}, "");
  ASSERT_EQ(chosen.listen.size(), 1U);
  EXPECT_EQ(chosen.listen[0].host(), "127.0.0.1");
  // The interface is for other hosts.
  chosen = choose_meeting_addresses({{"localhost", false, ""}}, "no-such-interface");
  EXPECT_EQ(chosen.listen[0].host(), "127.0.0.1");
}

TEST(MeetingPlaceTest, TheAddressByWhichAHostWasReached) {
  auto chosen = choose_meeting_addresses(
      {{"localhost", false, ""}, {"a", true, "127.0.0.1"}, {"b", true, "127.0.0.1"}}, "");
  EXPECT_EQ(chosen.listen.size(), 1U);
  EXPECT_THAT(chosen.of_host, ElementsAre(0, 0, 0));
}

TEST(MeetingPlaceTest, AnAddressThatIsNotOursIsNotTaken) {
  // Behind a gateway; the name resolves, so the route tells.
  auto chosen = choose_meeting_addresses({{"127.0.0.1", true, "192.0.2.77"}}, "");
  EXPECT_EQ(chosen.listen[0].host(), "127.0.0.1");
  try {
    choose_meeting_addresses({{"no-such-host.invalid", true, "192.0.2.77"}}, "");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("--network-interface"));
  }
}

TEST(MeetingPlaceTest, TheInterfaceThatWasAskedFor) {
  auto chosen = choose_meeting_addresses({{"a", true, "192.0.2.77"}}, "lo");
  EXPECT_EQ(chosen.listen[0].host(), "127.0.0.1");
  EXPECT_THROW(choose_meeting_addresses({{"a", true, "127.0.0.1"}}, "nope0"), Error);
}

}  // namespace
}  // namespace kolo::launch
