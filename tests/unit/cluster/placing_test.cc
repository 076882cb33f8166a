#include "cluster/placing.h"

#include <gmock/gmock.h>

namespace kolo::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

exec::Holdings host(int free, bool is_draining = false) {
  return {{4, 0, {}}, {free, 0, {}}, is_draining, {}};
}

TEST(PlacingTest, PackedFillsHostsInOrder) {
  EXPECT_THAT(place({host(2), host(0), host(4)}, 5, {1, 0, {}}, Spread::packed),
              ElementsAre(2, 0, 3));
}

TEST(PlacingTest, EvenTakesOneOfEachHostAfterTheOther) {
  EXPECT_THAT(place({host(1), host(4), host(4)}, 5, {1, 0, {}}, Spread::even),
              ElementsAre(1, 2, 2));
}

TEST(PlacingTest, ThereIsSpaceForAllOrForNone) {
  EXPECT_THAT(place({host(2), host(2)}, 5, {1, 0, {}}, Spread::packed), IsEmpty());
  EXPECT_THAT(place({host(3), host(3)}, 3, {2, 0, {}}, Spread::packed), IsEmpty());
}

TEST(PlacingTest, DrainedHostsTakeNothing) {
  EXPECT_THAT(place({host(4, true), host(4)}, 2, {1, 0, {}}, Spread::even), ElementsAre(0, 2));
}

TEST(PlacingTest, EveryResourceCounts) {
  exec::Holdings rich = host(4), poor = host(4);
  rich.free.gpus = 2;
  rich.free.named["licences"] = 1;
  EXPECT_THAT(place({poor, rich}, 2, {1, 1, {}}, Spread::packed), ElementsAre(0, 2));
  EXPECT_THAT(place({poor, rich}, 2, {1, 0, {{"licences", 1}}}, Spread::packed), IsEmpty());
}

}  // namespace
}  // namespace kolo::cluster
