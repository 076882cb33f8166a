// What the leader decides, without ranks.
#include "engine/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kolo::runtime {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = Coordinator::Clock;

Request allreduce(const std::string& name, Shape shape = {4}, ReduceOp op = ReduceOp::sum) {
  Request request;
  request.name = name;
  request.kind = OpKind::allreduce;
  request.op = op;
  request.tensors.push_back({DataType::float32, std::move(shape)});
  return request;
}

Request of_kind(OpKind kind, const std::string& name, Shape shape = {4}) {
  Request request = allreduce(name, std::move(shape));
  request.kind = kind;
  return request;
}

std::vector<std::string> names(const Decision& decision) {
  std::vector<std::string> out;
  for (const auto& request : decision.requests) out.push_back(request.name);
  return out;
}

class CoordinatorTest : public testing::Test {
 protected:
  Coordinator make(int size, std::size_t fusion = 1 << 20) {
    std::vector<int> ranks;
    for (int r = 0; r < size; ++r) ranks.push_back(r * 10);
    return {ranks, {.fusion_bytes = fusion, .stall_warning = 60s, .stall_shutdown = 300s}};
  }
  Clock::time_point now_ = Clock::now();
};

TEST_F(CoordinatorTest, DecidesWhenTheLastHasSubmitted) {
  Coordinator leader = make(3);
  leader.submit(2, allreduce("a"), now_);
  leader.submit(0, allreduce("b"), now_);
  leader.submit(0, allreduce("a"), now_);
  EXPECT_TRUE(leader.take_decisions().empty());
  leader.submit(1, allreduce("a"), now_);
  const auto decisions = leader.take_decisions();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].kind, Decision::Kind::execute);
  EXPECT_THAT(names(decisions[0]), testing::ElementsAre("a"));
  EXPECT_TRUE(leader.take_decisions().empty());
}

TEST_F(CoordinatorTest, FusesWhatFits) {
  Coordinator leader = make(1, 8 * 64);
  for (const char* name : {"a", "b", "c"}) leader.submit(0, allreduce(name), now_);
  leader.submit(0, allreduce("other", {4}, ReduceOp::max), now_);
  leader.submit(0, allreduce("large", {17}), now_);  // over an eighth of the threshold
  leader.submit(0, of_kind(OpKind::broadcast, "moved"), now_);
  leader.submit(0, allreduce("d"), now_);
  const auto decisions = leader.take_decisions();
  ASSERT_EQ(decisions.size(), 4U);
  EXPECT_THAT(names(decisions[0]), testing::ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(names(decisions[1]), testing::ElementsAre("other"));
  EXPECT_THAT(names(decisions[2]), testing::ElementsAre("large"));
  EXPECT_THAT(names(decisions[3]), testing::ElementsAre("moved"));
}

TEST_F(CoordinatorTest, FusionHasALimit) {
  Coordinator leader = make(1, 128);  // eight tensors of 16 bytes
  for (int i = 0; i < 20; ++i) leader.submit(0, allreduce(std::to_string(i)), now_);
  std::vector<std::size_t> sizes;
  for (const auto& decision : leader.take_decisions()) sizes.push_back(decision.requests.size());
  EXPECT_THAT(sizes, testing::ElementsAre(8, 8, 4));
  Coordinator none = make(1, 0);
  for (int i = 0; i < 3; ++i) none.submit(0, allreduce(std::to_string(i)), now_);
  EXPECT_EQ(none.take_decisions().size(), 3U);
}

TEST_F(CoordinatorTest, SaysWhatDiffers) {
  const auto complaint = [&](Request a, Request b) {
    Coordinator leader = make(2);
    leader.submit(0, std::move(a), now_);
    leader.submit(1, std::move(b), now_);
    const auto decisions = leader.take_decisions();
    EXPECT_EQ(decisions.size(), 1U);
    EXPECT_EQ(decisions[0].kind, Decision::Kind::fail);
    EXPECT_EQ(decisions[0].code, ErrorCode::invalid_argument);
    EXPECT_THAT(decisions[0].text, HasSubstr("'x': ranks 0 and 10 disagree: "));
    return decisions[0].text;
  };
  EXPECT_THAT(complaint(allreduce("x", {2, 3}), allreduce("x", {3, 2})),
              HasSubstr("shape [2, 3] and [3, 2]"));
  EXPECT_THAT(complaint(allreduce("x"), of_kind(OpKind::broadcast, "x")),
              HasSubstr("operation allreduce and broadcast"));
  EXPECT_THAT(complaint(allreduce("x"), allreduce("x", {4}, ReduceOp::max)),
              HasSubstr("reduction sum and max"));
  Request half = allreduce("x");
  half.tensors[0].type = DataType::float16;
  EXPECT_THAT(complaint(allreduce("x"), half), HasSubstr("type float32 and float16"));
  Request scaled = allreduce("x");
  scaled.scaling.prescale = 0.5;
  EXPECT_THAT(complaint(allreduce("x"), scaled), HasSubstr("factors 1, 1 and 0.5, 1"));
  Request rooted = of_kind(OpKind::broadcast, "x");
  rooted.root = 1;
  EXPECT_THAT(complaint(of_kind(OpKind::broadcast, "x"), rooted), HasSubstr("root -1 and 1"));
  EXPECT_THAT(
      complaint(of_kind(OpKind::allgather, "x", {2, 3}), of_kind(OpKind::allgather, "x", {5, 4})),
      HasSubstr("shape [2, 3] and [5, 4]"));
}

TEST_F(CoordinatorTest, GatheredRowsMayDiffer) {
  Coordinator leader = make(2);
  leader.submit(0, of_kind(OpKind::allgather, "x", {2, 3}), now_);
  leader.submit(1, of_kind(OpKind::allgather, "x", {5, 3}), now_);
  EXPECT_EQ(leader.take_decisions()[0].kind, Decision::Kind::execute);
}

TEST_F(CoordinatorTest, DoesWithoutThoseWhoJoined) {
  Coordinator leader = make(3);
  leader.submit(0, allreduce("a"), now_);
  leader.submit(2, allreduce("a"), now_);
  leader.submit(0, of_kind(OpKind::broadcast, "b"), now_);
  leader.submit(2, of_kind(OpKind::broadcast, "b"), now_);
  leader.join(1);
  auto decisions = leader.take_decisions();
  ASSERT_EQ(decisions.size(), 2U);
  EXPECT_EQ(decisions[0].kind, Decision::Kind::execute);
  EXPECT_EQ(decisions[1].kind, Decision::Kind::fail);
  EXPECT_THAT(decisions[1].text, HasSubstr("rank 10 has joined"));
  leader.join(2);
  EXPECT_TRUE(leader.take_decisions().empty());
  leader.join(0);
  decisions = leader.take_decisions();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].kind, Decision::Kind::joined);
  EXPECT_EQ(decisions[0].rank, 0);
  // And then everybody is needed again.
  leader.submit(0, allreduce("a"), now_);
  EXPECT_TRUE(leader.take_decisions().empty());
}

TEST_F(CoordinatorTest, ReportsStallsAndEndsThem) {
  Coordinator leader = make(3);
  EXPECT_FALSE(leader.next_check().has_value());
  leader.submit(0, allreduce("a"), now_);
  leader.submit(1, allreduce("b"), now_);
  leader.submit(0, allreduce("b"), now_);
  EXPECT_EQ(leader.next_check(), now_ + 60s);
  EXPECT_FALSE(leader.check_stalls(now_ + 59s).has_value());
  const auto text = leader.check_stalls(now_ + 61s);
  ASSERT_TRUE(text.has_value());
  EXPECT_THAT(*text, HasSubstr("rank 10, 20 has not submitted a"));
  EXPECT_THAT(*text, HasSubstr("rank 20 has not submitted b"));
  EXPECT_FALSE(leader.check_stalls(now_ + 62s).has_value());  // once a while
  EXPECT_TRUE(leader.check_stalls(now_ + 122s).has_value());
  leader.check_stalls(now_ + 300s);
  const auto decisions = leader.take_decisions();
  ASSERT_EQ(decisions.size(), 2U);
  EXPECT_EQ(decisions[0].code, ErrorCode::timeout);
  EXPECT_EQ(decisions[0].rank, 10);
  EXPECT_EQ(decisions[1].rank, 20);
  EXPECT_THAT(decisions[0].text, HasSubstr("'a' was not submitted by rank 10, 20 within 300 s"));
  // Who had not submitted it may do so now, and must not take the failure for its own.
  EXPECT_THAT(decisions[0].absent, testing::ElementsAre(1, 2));
  EXPECT_THAT(decisions[1].absent, testing::ElementsAre(2));
  EXPECT_FALSE(leader.next_check().has_value());
}

// As by the largest number of milliseconds that there is.
TEST_F(CoordinatorTest, TimesWithoutAnEndDoNotEndAtOnce) {
  Coordinator leader({0, 1}, {.stall_warning = std::chrono::milliseconds::max(),
                              .stall_shutdown = std::chrono::milliseconds::max()});
  leader.submit(0, allreduce("a"), now_);
  EXPECT_GT(leader.next_check(), now_ + 24h);
  EXPECT_FALSE(leader.check_stalls(now_ + 24h).has_value());
  EXPECT_TRUE(leader.take_decisions().empty());
}

TEST_F(CoordinatorTest, FusionsFitIntoAMessage) {
  Coordinator leader = make(1);
  for (int i = 0; i < 2000; ++i)
    leader.submit(0, allreduce(std::to_string(i) + std::string(4000, 'x'), {0}), now_);
  const auto decisions = leader.take_decisions();
  EXPECT_GE(decisions.size(), 2U);
  std::size_t requests = 0;
  for (const Decision& decision : decisions) {
    EXPECT_LE(encoded_bytes(decision), 2 * kRequestLimit);
    requests += decision.requests.size();
  }
  EXPECT_EQ(requests, 2000U);
}

TEST(Messages, SurviveTheTrip) {
  Request request = allreduce("päth/∇", {3, 0, 7}, ReduceOp::adasum);
  request.kind = OpKind::grouped_allreduce;
  request.root = 3;
  request.scaling = {0.25, -1e300};
  request.tensors.push_back({DataType::boolean, {}});
  FrameParser parser(1 << 20);
  parser.feed(encode_submit({request}));
  const auto back = decode_submit(parser.next()->payload);
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back[0].name, request.name);
  EXPECT_EQ(back[0].op, request.op);
  EXPECT_EQ(back[0].root, 3);
  EXPECT_EQ(back[0].scaling.postscale, -1e300);
  ASSERT_EQ(back[0].tensors.size(), 2U);
  EXPECT_EQ(back[0].tensors[0].shape, (Shape{3, 0, 7}));
  EXPECT_EQ(back[0].tensors[1].type, DataType::boolean);
  Decision failure;
  failure.kind = Decision::Kind::fail;
  failure.text = "late";
  failure.absent = {1, 4};
  parser.feed(encode_decisions({failure}));
  EXPECT_EQ(decode_decisions(parser.next()->payload).at(0).absent, failure.absent);
  constexpr std::size_t kAround = 9;  // the frame's length and type, the number of those inside
  EXPECT_EQ(encode_submit({request}).size(), kAround + encoded_bytes(request));
  failure.requests = {request};
  EXPECT_EQ(encode_decisions({failure}).size(), kAround + encoded_bytes(failure));
  const std::string frame = encode_submit({request});
  EXPECT_THROW((void)decode_submit(std::string_view(frame).substr(5, 20)), Error);
}

}  // namespace
}  // namespace kolo::runtime
