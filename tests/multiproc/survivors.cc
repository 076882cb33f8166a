#include "multiproc/survivors.h"

#include <fmt/format.h>

#include <numeric>

#include "kolo/error.h"
#include "support/arrangement.h"

namespace kolo::test {
namespace {

constexpr std::size_t kLarge = 600'000;

OutputAllocator discard(std::vector<float>& memory) { return Communicator::into(memory); }

std::vector<Operation> make_operations() {
  using C = Communicator;
  std::vector<Operation> all;
  auto add = [&](std::string name, std::function<void(C&)> call) {
    all.push_back({std::move(name), std::move(call)});
  };
  add("barrier", [](C& c) { c.barrier(); });
  add("allreduce_small", [](C& c) { (void)c.allreduce(1.0F); });
  add("allreduce_foreign", [](C& c) {
    static std::vector<float> data(kLarge);
    c.allreduce(std::span(data));
  });
  add("allreduce_own", [](C& c) {
    auto data = c.allocate<float>(kLarge);
    for (int i = 0; i < 20; ++i) c.allreduce(data.span());
  });
  add("adasum", [](C& c) {
    static std::vector<float> data(50'000, 1.0F);
    c.allreduce(std::span(data), ReduceOp::adasum);
  });
  add("grouped_allreduce", [](C& c) {
    static std::vector<float> data(kLarge);
    const TensorRef tensors[] = {
        {data.data(), data.data(), 1000, DataType::float32},
        {data.data() + 1000, data.data() + 1000, 100'000, DataType::int32}};
    c.grouped_allreduce(tensors);
  });
  add("reducescatter", [](C& c) {
    static std::vector<float> data(kLarge), out(kLarge);
    c.reducescatter(data.data(), out.data(), kLarge, 1, DataType::float32);
  });
  add("allgather", [](C& c) {
    static std::vector<float> data(kLarge), out;
    c.allgather(data.data(), kLarge / 4, 1, DataType::float32, discard(out));
  });
  add("broadcast", [](C& c) {
    static std::vector<float> data(kLarge);
    c.broadcast(std::span(data), 0);
  });
  add("alltoall", [](C& c) {
    static std::vector<float> data(kLarge), out;
    const auto rows = kLarge / static_cast<std::size_t>(c.size()) * c.size();
    c.alltoall(data.data(), rows, 1, DataType::float32, {}, discard(out));
  });
  add("gather", [](C& c) {
    static std::vector<float> data(kLarge / 4), out;
    c.gather(data.data(), data.size(), DataType::float32, 0, discard(out));
  });
  add("scatter", [](C& c) {
    static std::vector<float> data(kLarge), out(kLarge);
    const std::vector<std::size_t> counts(c.size(), 50'000);
    c.scatter(data.data(), counts, out.data(), 50'000, DataType::float32, 0);
  });
  add("send_recv", [](C& c) {
    // Even ranks send first, so that large messages do not lock the ring up.
    static std::vector<float> data(kLarge / 4), got(kLarge / 4);
    const int right = (c.rank() + 1) % c.size(), left = (c.rank() + c.size() - 1) % c.size();
    const auto send = [&] { c.send(data.data(), data.size(), DataType::float32, right); };
    const auto recv = [&] { c.recv(got.data(), got.size(), DataType::float32, left); };
    if (c.rank() % 2 == 0) {
      send();
      recv();
    } else {
      recv();
      send();
    }
  });
  add("subset", [](C& c) {
    // In the same order: an Error names the rank in the numbering of the group that threw it.
    std::vector<int> ranks(c.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    auto group = c.subset(ranks);
    (void)group->allreduce(1);
  });
  return all;
}

}  // namespace

const std::vector<Operation>& every_operation() {
  static const std::vector<Operation> all = make_operations();
  return all;
}
std::string name_of(const Operation& operation) { return operation.name; }
std::ostream& operator<<(std::ostream& out, const Operation& operation) {
  return out << operation.name;
}

bool wire_is_available(std::string* why) { return is_available({"", "tcp", {0, 1}, "tcp"}, why); }

std::string lost_in(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::peer_lost || !e.rank()) return fmt::format("threw {}", e.what());
    return fmt::format("peer_lost of {} at {} ({})", *e.rank(), now_ns(), e.message());
  }
  return "nothing was thrown";
}

std::string repeat_until_lost(const std::function<void()>& call) {
  return lost_in([&] {
    for (;;) call();
  });
}

int lost_rank(const Outcome& outcome) {
  int lost = -1;
  return std::sscanf(outcome.result.c_str(), "peer_lost of %d", &lost) == 1 ? lost : -1;
}

void expect_lost(const Outcome& outcome, int rank, std::int64_t since_ns,
                 std::chrono::milliseconds limit) {
  ASSERT_TRUE(outcome.has_result) << outcome.error << ", status " << outcome.status;
  int lost = -1;
  long long at = 0;
  ASSERT_EQ(std::sscanf(outcome.result.c_str(), "peer_lost of %d at %lld", &lost, &at), 2)
      << outcome.result;
  EXPECT_EQ(lost, rank) << outcome.result;
  const auto took = std::chrono::nanoseconds(at - since_ns);
  EXPECT_LE(took, limit) << "peer_lost came late";
  const std::string shown =
      fmt::format("{:.0f}", std::chrono::duration<double, std::milli>(took).count());
  testing::Test::RecordProperty("milliseconds_to_peer_lost", shown);
  std::printf("    peer_lost after %s ms\n", shown.c_str());
}

}  // namespace kolo::test
