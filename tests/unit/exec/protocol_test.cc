#include "exec/protocol.h"

#include <gtest/gtest.h>

#include "kolo/error.h"

namespace kolo::exec {
namespace {

using namespace std::chrono_literals;

Task full_task() {
  Task task;
  task.id = 1ULL << 40;
  task.argv = {"prog", "", "a b\n"};
  task.environment = {"A=1"};
  task.directory = "/d";
  task.streams = {true, "/out", "/err"};
  task.descriptors = {{7, "FD"}};
  task.secret = std::string(32, '\0');
  task.cpus = {0, 3};
  task.share = {1, 4, BindTo::core};
  task.grace = {77ms, 1ms, 0ms};
  task.tell_exit = true;
  return task;
}

TEST(ExecProtocolTest, TasksComeOutAsTheyWentIn) {
  const Task task = full_task();
  const Task back = decode_task(encode(task));
  EXPECT_EQ(back.id, task.id);
  EXPECT_EQ(back.argv, task.argv);
  EXPECT_EQ(back.environment, task.environment);
  EXPECT_EQ(back.directory, task.directory);
  EXPECT_TRUE(back.streams.to_owner);
  EXPECT_EQ(back.streams.out, task.streams.out);
  EXPECT_EQ(back.streams.err, task.streams.err);
  ASSERT_EQ(back.descriptors.size(), 1U);
  EXPECT_EQ(back.descriptors[0].variable, "FD");
  EXPECT_EQ(back.secret, task.secret);
  EXPECT_EQ(back.cpus, task.cpus);
  EXPECT_EQ(back.share.index, 1);
  EXPECT_EQ(back.share.count, 4);
  EXPECT_EQ(back.share.bind_to, BindTo::core);
  EXPECT_EQ(back.grace.end, 77ms);
  EXPECT_EQ(back.grace.left_behind, 1ms);
  EXPECT_EQ(back.grace.owner_lost, 0ms);
  EXPECT_TRUE(back.tell_exit);
}

TEST(ExecProtocolTest, CutMessagesAreCorruption) {
  const std::string whole = encode(full_task());
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(decode_task(std::string_view(whole).substr(0, size)), Error) << size;
  EXPECT_THROW(decode_task(whole + "x"), Error);
  EXPECT_THROW(decode_task(encode(Task{})), Error);  // names no program
  EXPECT_THROW(decode_task_end("abc"), Error);
  EXPECT_THROW(decode_output(""), Error);
}

TEST(ExecProtocolTest, OtherMessagesComeOutAsTheyWentIn) {
  const Hello hello = decode_hello(encode(Hello{"h", "10.0.0.1", 8}));
  EXPECT_EQ(hello.host, "h");
  EXPECT_EQ(hello.from, "10.0.0.1");
  EXPECT_EQ(hello.processors, 8);
  const Output output = decode_output(encode(Output{5, Stream::err, "bytes"}));
  EXPECT_EQ(output.id, 5U);
  EXPECT_EQ(output.stream, Stream::err);
  EXPECT_EQ(output.bytes, "bytes");
  EXPECT_EQ(decode_exited(encode(Exited{5, -9})).status, -9);
  const TaskEnd end = decode_task_end(encode(TaskEnd{6, 256, "tail", "error"}));
  EXPECT_EQ(end.id, 6U);
  EXPECT_EQ(end.status, 256);
  EXPECT_EQ(end.tail, "tail");
  EXPECT_EQ(end.error, "error");
  const Claim claim = decode_claim(encode(Claim{"me", 30s}));
  EXPECT_EQ(claim.owner, "me");
  EXPECT_EQ(claim.lease, 30s);
}

TEST(ExecProtocolTest, ReservationsComeOutAsTheyWentIn) {
  const Amounts amounts{2, 1, {{"memory", 1e9}, {"licences", 0.5}}};
  const ReservationOrder order = decode_reservation(encode(ReservationOrder{7, amounts}));
  EXPECT_EQ(order.id, 7U);
  EXPECT_EQ(order.want, amounts);
  const Refusal refusal = decode_refusal(encode(Refusal{7, "why"}));
  EXPECT_EQ(refusal.id, 7U);
  EXPECT_EQ(refusal.reason, "why");
  const HostLoad load = decode_host_load(encode(HostLoad{1.5, 1000, 300}));
  EXPECT_EQ(load.load, 1.5);
  EXPECT_EQ(load.memory_bytes, 1000U);
  EXPECT_EQ(load.available_bytes, 300U);
  const Holdings holdings =
      decode_holdings(encode(Holdings{amounts, {1, 0, {}}, true, {{"me", {1, 1, {}}, {3, 4}}}}));
  EXPECT_EQ(holdings.total, amounts);
  EXPECT_EQ(holdings.free.slots, 1);
  EXPECT_TRUE(holdings.is_draining);
  ASSERT_EQ(holdings.held.size(), 1U);
  EXPECT_EQ(holdings.held[0].owner, "me");
  EXPECT_EQ(holdings.held[0].processors, (std::vector<int>{3, 4}));
}

}  // namespace
}  // namespace kolo::exec
