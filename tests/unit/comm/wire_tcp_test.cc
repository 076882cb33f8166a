// The TCP messenger over loopback, ranks being threads.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "base/fd.h"
#include "comm/wire/messenger.h"
#include "kolo/error.h"
#include "support/threads.h"

namespace kolo::comm {
namespace {

using namespace std::chrono_literals;
using test::run_threads;

/// allgather() between threads. `before_answer` is called once, at meeting `number`, when all have
/// come and before anybody goes on.
class Meetings {
 public:
  Meetings(int size, int number, std::function<void()> before_answer)
      : size_(size), number_(number), before_answer_(std::move(before_answer)) {}

  std::vector<std::string> gather(int rank, const std::string& mine) {
    std::unique_lock lock(mutex_);
    const int meeting = met_[rank]++;
    auto& [contributions, is_open] = meetings_[meeting];
    contributions[rank] = mine;
    if (static_cast<int>(contributions.size()) == size_) {
      if (meeting == number_ && before_answer_) before_answer_();
      is_open = true;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return is_open; });
    std::vector<std::string> all;
    for (const auto& [member, text] : contributions) all.push_back(text);
    return all;
  }

 private:
  struct Meeting {
    std::map<int, std::string> contributions;
    bool is_open = false;
  };
  const int size_, number_;
  const std::function<void()> before_answer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, int> met_;
  std::map<int, Meeting> meetings_;
};

class WireTcp : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string why; !wire_plugin_available("tcp", &why)) GTEST_SKIP() << why;
  }

  void with_messengers(int size, const std::function<void(int, Messenger&)>& body,
                       std::function<void()> at_invitations = nullptr) {
    Meetings meetings(size, 1, std::move(at_invitations));
    run_threads(size, [&](int rank) {
      WireSetup setup;
      setup.world_ranks.resize(size);
      std::iota(setup.world_ranks.begin(), setup.world_ranks.end(), 0);
      setup.me = rank;
      setup.timeout = 20s;
      setup.network_interface = "lo";
      setup.allgather = [&](const std::string& mine) { return meetings.gather(rank, mine); };
      auto messenger = load_wire_plugin("tcp").connect(setup);
      body(rank, *messenger);
    });
  }
  static Deadline soon() { return Deadline::after(20s); }
};

TEST_F(WireTcp, LongMessagesPassBothWaysAtOnce) {
  with_messengers(3, [](int rank, Messenger& messenger) {
    constexpr std::size_t kWords = 3'000'000;
    std::vector<std::uint64_t> mine(kWords);
    std::iota(mine.begin(), mine.end(), static_cast<std::uint64_t>(rank) << 32);
    std::vector<std::vector<std::uint64_t>> theirs(3);
    std::vector<Messenger::Ticket> tickets;
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == rank) continue;
      tickets.push_back(messenger.post_send(peer, 3, mine.data(), kWords * 8));
      theirs[peer].resize(kWords);
      tickets.push_back(messenger.post_recv(peer, 3, theirs[peer].data(), kWords * 8));
    }
    for (auto ticket : tickets) messenger.wait(ticket, soon());
    for (int peer = 0; peer < 3; ++peer)
      for (std::size_t i = 0; i < theirs[peer].size(); ++i)
        ASSERT_EQ(theirs[peer][i], (static_cast<std::uint64_t>(peer) << 32) + i);
  });
}

TEST_F(WireTcp, MessagesMatchByTagAndInOrder) {
  with_messengers(2, [](int rank, Messenger& messenger) {
    constexpr int kMessages = 40;
    const auto length_of = [](int i) { return static_cast<std::size_t>(i) * 3001; };
    if (rank == 0) {
      std::vector<std::vector<char>> bodies;
      std::vector<Messenger::Ticket> tickets;
      for (int i = 0; i < kMessages; ++i)
        bodies.emplace_back(length_of(i), static_cast<char>('a' + i % 26));
      for (int i = 0; i < kMessages; ++i)
        tickets.push_back(messenger.post_send(1, i % 2, bodies[i].data(), bodies[i].size()));
      for (auto ticket : tickets) messenger.wait(ticket, soon());
      return;
    }
    // First all with the odd tag: the even ones arrive unasked and are kept.
    for (int parity : {1, 0})
      for (int i = parity; i < kMessages; i += 2) {
        std::vector<char> body(length_of(i));
        messenger.wait(messenger.post_recv(0, parity, body.data(), body.size()), soon());
        ASSERT_EQ(body, std::vector<char>(length_of(i), static_cast<char>('a' + i % 26))) << i;
      }
  });
}

TEST_F(WireTcp, SmallExchangesOfSomeMembers) {
  with_messengers(4, [](int rank, Messenger& messenger) {
    if (rank == 2) return;
    const std::vector<int> members = {3, 0, 1};
    constexpr std::size_t kStride = 2048;
    for (int round = 0; round < 200; ++round) {
      const auto text_of = [&](int member) {
        return std::string(static_cast<std::size_t>(member * 500 + round),
                           static_cast<char>('a' + (member + round) % 26));
      };
      std::vector<char> all(3 * kStride, '?');
      // Each of the others gets its own: the text and the receiver's number.
      std::vector<std::string> mine;
      std::vector<Messenger::SmallMessage> messages;
      for (const int member : members) mine.push_back(text_of(rank) + std::to_string(member));
      for (const auto& text : mine) messages.push_back(std::as_bytes(std::span(text)));
      messenger.exchange_small(members, messages, all.data(), kStride, soon());
      for (std::size_t i = 0; i < members.size(); ++i) {
        const std::string expected = text_of(members[i]) + std::to_string(rank);
        ASSERT_EQ(std::string(all.data() + i * kStride, expected.size()), expected);
      }
    }
  });
}

TEST_F(WireTcp, AClosedConnectionIsPeerLostAndNoSignal) {
  with_messengers(2, [](int rank, Messenger& messenger) {
    if (rank == 1) return;
    std::vector<char> body(1'000'000);
    try {
      // Nobody reads; the connection closes under the writer.
      for (int i = 0; i < 100; ++i)
        messenger.wait(messenger.post_send(1, 0, body.data(), body.size()), soon());
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::peer_lost);
      EXPECT_EQ(error.rank(), 1);
    }
    EXPECT_THROW(messenger.post_recv(1, 0, body.data(), 1), Error) << "broken for good";
    EXPECT_EQ(messenger.farewell(1, soon()), 1);
  });
}

TEST_F(WireTcp, ADeadlineEndsAWait) {
  std::atomic<bool> has_ended{false};
  with_messengers(2, [&](int rank, Messenger& messenger) {
    char byte = 0;
    if (rank == 1) {
      has_ended.wait(false);
      return;
    }
    const auto ticket = messenger.post_recv(1, 0, &byte, 1);
    EXPECT_THROW(messenger.wait(ticket, Deadline::after(50ms)), Error);
    has_ended = true;
    has_ended.notify_all();
  });
}

TEST_F(WireTcp, AbortFromAnotherThreadEndsAWait) {
  std::atomic<bool> has_ended{false};
  with_messengers(3, [&](int rank, Messenger& messenger) {
    char byte = 0;
    if (rank != 0) {
      has_ended.wait(false);
      return;
    }
    const auto ticket = messenger.post_recv(1, 0, &byte, 1);
    std::thread other([&] { messenger.abort(2, "killed by signal 9"); });
    try {
      messenger.wait(ticket, soon());
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.rank(), 2);
      EXPECT_EQ(error.message(), "killed by signal 9");
    }
    other.join();
    has_ended = true;
    has_ended.notify_all();
  });
}

TEST_F(WireTcp, AFarewellNamesTheOneWhoIsSilent) {
  // 0 waits for 1, 1 waits for 2, and 2 does nothing. 0 hears it from 1.
  std::atomic<int> ended{0};
  with_messengers(3, [&](int rank, Messenger& messenger) {
    if (rank == 2) {
      for (int seen = ended; seen < 2; seen = ended) ended.wait(seen);
      return;
    }
    char byte = 0;
    const auto ticket = messenger.post_recv(rank + 1, 0, &byte, 1);
    EXPECT_THROW(messenger.wait(ticket, Deadline::after(rank == 0 ? 20s : 50ms)), Error);
    EXPECT_EQ(messenger.farewell(rank + 1, Deadline::after(300ms)), 2) << "rank " << rank;
    ++ended;
    ended.notify_all();
  });
}

/// Ports on which this process listens.
std::set<std::uint16_t> listening_ports() {
  std::set<std::uint16_t> ports;
  for (int fd = 0; fd < 1024; ++fd) {
    int listens = 0;
    socklen_t length = sizeof listens;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0)
      continue;
    sockaddr_in address{};
    length = sizeof address;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
    ports.insert(ntohs(address.sin_port));
  }
  return ports;
}

Fd connect_to(std::uint16_t port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return socket;
}

struct Stranger {
  std::string name, words;
};

class WireTcpStranger : public WireTcp, public testing::WithParamInterface<Stranger> {};

TEST_P(WireTcpStranger, CannotTakeAPlace) {
  // Before anybody knows where to connect to, a stranger is at every door.
  std::vector<Fd> strangers;
  std::size_t doors = 0;
  const auto intrude = [&] {
    for (const std::uint16_t port : listening_ports()) {
      strangers.push_back(connect_to(port));
      const std::string& words = GetParam().words;
      ::send(strangers.back().get(), words.data(), words.size(), MSG_NOSIGNAL);
      ++doors;
    }
  };
  with_messengers(
      2,
      [](int rank, Messenger& messenger) {
        const std::vector<int> members = {0, 1};
        int all[2] = {-1, -1};
        const std::vector<Messenger::SmallMessage> mine(2, std::as_bytes(std::span(&rank, 1)));
        messenger.exchange_small(members, mine, all, sizeof rank, soon());
        EXPECT_THAT(all, testing::ElementsAre(0, 1));
        EXPECT_THAT(listening_ports(), testing::IsEmpty()) << "no door stays open";
      },
      intrude);
  EXPECT_EQ(doors, 2U) << "the test did not find the doors";
}

INSTANTIATE_TEST_SUITE_P(Saying, WireTcpStranger,
                         testing::Values(Stranger{"nothing", ""},
                                         Stranger{"http",
                                                  "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
                                         Stranger{"zeros", std::string(4096, '\0')}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kolo::comm
