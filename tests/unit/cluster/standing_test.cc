#include "cluster/standing.h"

#include <gmock/gmock.h>

#include "kolo/error.h"

namespace kolo::cluster {
namespace {

TEST(StandingTest, AnOrderComesOutAsItWentIn) {
  StandingOrder order;
  order.cluster = "lab";
  order.address = "10.0.0.1";
  order.offer = {2, 1, {{"licences", 3}}};
  order.idle_time = std::chrono::minutes(5);
  order.only_find = true;
  const StandingOrder read = decode_standing_order(encode(order));
  EXPECT_EQ(read.cluster, "lab");
  EXPECT_EQ(read.key.bytes(), order.key.bytes());
  EXPECT_EQ(read.address, "10.0.0.1");
  EXPECT_EQ(read.offer, order.offer);
  EXPECT_EQ(read.idle_time, order.idle_time);
  EXPECT_TRUE(read.only_find);
  EXPECT_THROW(decode_standing_order(encode(order) + "x"), Error);
  EXPECT_THROW(decode_standing_order(""), Error);
}

TEST(StandingTest, TheAnswerIsFoundAmongWhatShellsPrint) {
  const auto answer = parse_standing_answer("Welcome!\nkolo-standing 10.0.0.1:4711 99\nbye\n");
  EXPECT_EQ(answer.address, "10.0.0.1:4711");
  EXPECT_EQ(answer.process, 99);
  EXPECT_EQ(parse_standing_answer("kolo-standing none 0\n").address, "");
  EXPECT_THROW(parse_standing_answer("kolo: unknown command\n"), Error);
}

}  // namespace
}  // namespace kolo::cluster
