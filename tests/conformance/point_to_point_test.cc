// send, recv and barrier.
#include <atomic>

#include "conformance/conformance.h"

namespace kolo::test {
namespace {

class PointToPoint : public Conformance {};

// Every rank hands a message around; what a rank can send without a receiver it sends first.
TEST_P(PointToPoint, RingOfSmallMessages) {
  run([&](Communicator& comm) {
    const int n = comm.size(), me = comm.rank();
    if (n == 1) return;
    for (DataType type : kAllTypes) {
      for (std::size_t count : {0, 1, 3, 17, 1023, 8000}) {
        const Bytes mine = make_values(type, count, me * 31 + count, Range::wild);
        const int left = (me + n - 1) % n;
        const Bytes expected = make_values(type, count, left * 31 + count, Range::wild);
        Bytes got(mine.size());
        comm.send(mine.data(), count, type, (me + 1) % n);
        comm.recv(got.data(), count, type, left);
        EXPECT_TRUE(same_bytes(got, expected)) << count << " " << to_string(type);
      }
    }
  });
}

TEST_P(PointToPoint, UpTo64KiBDoesNotWaitForTheReceiver) {
  run([&](Communicator& comm) {
    if (comm.size() == 1) return;
    const std::size_t count = 64 * 1024;
    const int peer = comm.rank() ^ 1;
    if (peer < comm.size()) {
      Bytes mine(count, std::byte(comm.rank() + 1)), got(count);
      comm.send(mine.data(), count, DataType::uint8, peer);  // both send first
      comm.recv(got.data(), count, DataType::uint8, peer);
      EXPECT_EQ(got, Bytes(count, std::byte(peer + 1)));
    }
    comm.barrier();
  });
}

TEST_P(PointToPoint, LargeMessages) {
  run([&](Communicator& comm) {
    const int n = comm.size(), me = comm.rank();
    for (std::size_t count : {70'001, 1'000'003}) {
      for (int from = 0; from < n; ++from) {
        const int to = (from + 1) % n;
        if (from == to) continue;
        const Bytes message = make_values(DataType::int32, count, from, Range::wild);
        if (me == from) comm.send(message.data(), count, DataType::int32, to);
        if (me == to) {
          Place got(comm, from % 2 == 0 ? Where::own : Where::unaligned, message.size());
          comm.recv(got.data(), count, DataType::int32, from);
          EXPECT_TRUE(same_bytes(got.bytes(), message));
        }
      }
    }
  });
}

TEST_P(PointToPoint, ManyMessagesStayInOrder) {
  run([&](Communicator& comm) {
    const int n = comm.size();
    Random random(4);
    for (int i = 0; i < 200; ++i) {
      const int from = static_cast<int>(random.below(n)), to = static_cast<int>(random.below(n));
      const std::size_t count = random.below(10) == 0 ? random.below(40'000) : random.below(50);
      if (from == to) continue;
      const Bytes message = make_values(DataType::int16, count, i, Range::wild);
      if (comm.rank() == from) comm.send(message.data(), count, DataType::int16, to);
      if (comm.rank() == to) {
        Bytes got(message.size());
        comm.recv(got.data(), count, DataType::int16, from);
        EXPECT_TRUE(same_bytes(got, message)) << "message " << i;
      }
    }
  });
}

TEST_P(PointToPoint, AWrongExpectationLosesThatMessageOnly) {
  run([&](Communicator& comm) {
    if (comm.size() == 1) return;
    for (std::size_t count : {std::size_t{10}, std::size_t{300'000}}) {
      std::vector<float> data(count, 1.5F);
      if (comm.rank() == 0) {
        for (int i = 0; i < 4; ++i) {
          data[0] = static_cast<float>(i);
          comm.send(data.data(), count, DataType::float32, 1);
        }
      } else if (comm.rank() == 1) {
        expect_error(ErrorCode::invalid_argument,
                     [&] { comm.recv(data.data(), count - 1, DataType::float32, 0); });
        expect_error(ErrorCode::invalid_argument,
                     [&] { comm.recv(data.data(), count, DataType::int32, 0); });
        expect_error(ErrorCode::invalid_argument,
                     [&] { comm.recv(data.data(), count + 1, DataType::float32, 0); });
        comm.recv(data.data(), count, DataType::float32, 0);
        EXPECT_EQ(data[0], 3.0F);
      }
      comm.barrier();
    }
  });
}

TEST_P(PointToPoint, RanksThatAreNotThereAreRefused) {
  run([&](Communicator& comm) {
    int x = 0;
    for (int rank : {-1, comm.size(), 1000}) {
      expect_error(ErrorCode::invalid_argument, [&] { comm.send(&x, 1, DataType::int32, rank); });
      expect_error(ErrorCode::invalid_argument, [&] { comm.recv(&x, 1, DataType::int32, rank); });
      expect_error(ErrorCode::invalid_argument,
                   [&] { comm.broadcast(&x, 1, DataType::int32, rank); });
    }
    comm.barrier();
  });
}

TEST_P(PointToPoint, MixesWithCollectives) {
  run([&](Communicator& comm) {
    const int n = comm.size(), me = comm.rank();
    for (int i = 0; i < 50; ++i) {
      int value = i * n + me;
      if (n > 1) comm.send(&value, 1, DataType::int32, (me + 1) % n);
      EXPECT_EQ(comm.allreduce(1, ReduceOp::sum), n);
      const int left = (me + n - 1) % n;
      if (n > 1) comm.recv(&value, 1, DataType::int32, left);
      EXPECT_EQ(value, i * n + left);
    }
  });
}

TEST_P(PointToPoint, NobodyLeavesABarrierBeforeAllAreThere) {
  std::atomic<int> arrived = 0;
  run([&](Communicator& comm) {
    for (int round = 1; round <= 200; ++round) {
      ++arrived;
      comm.barrier();
      EXPECT_GE(arrived.load(), round * comm.size());
    }
  });
}

KOLO_CONFORMANCE(PointToPoint, all_arrangements());

}  // namespace
}  // namespace kolo::test
