#include "comm/rendezvous/doorkeeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <future>

#include "base/errors.h"
#include "comm/rendezvous/caller.h"
#include "support/few_descriptors.h"

namespace kolo::comm::rendezvous {
namespace {

using namespace std::chrono_literals;

class DoorkeeperTest : public testing::Test {
 protected:
  void open(DoorkeeperOptions options = {}) {
    options.secret = secret_;
    std::vector<Fd> listeners;
    listeners.push_back(listen_tcp(SocketAddress::loopback()));
    address_ = local_address_of(listeners.back().get());
    door_.emplace(std::move(listeners), std::move(options));
  }
  /// A rank that tries until it is let in.
  std::future<Fd> call(int rank) {
    return std::async(std::launch::async, [this, rank] {
      const Deadline deadline = Deadline::after(10s);
      for (;;) {
        try {
          return Caller(address_, Purpose::wire, rank, deadline, "the door")
              .prove(secret_, deadline);
        } catch (const Error& error) {
          if (!Caller::was_dropped(error)) throw;
        }
      }
    });
  }
  bool is_ready(int milliseconds) {
    pollfd poll{door_->poll_fd(), POLLIN, 0};
    return ::poll(&poll, 1, milliseconds) == 1;
  }
  /// Opens until somebody has come in.
  std::vector<Doorkeeper::Guest> wait_for_guest() {
    const Deadline deadline = Deadline::after(10s);
    while (!deadline.passed()) {
      is_ready(deadline.poll_timeout_ms());
      if (auto guests = door_->admit(); !guests.empty()) return guests;
    }
    ADD_FAILURE() << "nobody came";
    return {};
  }
  Fd stranger() { return connect_tcp(address_, Deadline::after(10s)); }

  const Secret secret_ = Secret::random();
  SocketAddress address_;
  std::optional<Doorkeeper> door_;
};

TEST_F(DoorkeeperTest, LetsInWhoKnowsTheSecret) {
  open();
  auto caller = call(7);
  auto guests = wait_for_guest();
  ASSERT_EQ(guests.size(), 1U);
  EXPECT_EQ(guests[0].hello.rank, 7);
  EXPECT_EQ(guests[0].hello.purpose, Purpose::wire);
  const Fd socket = caller.get();
  send_all(socket.get(), "x", Deadline::after(10s), "the door");
  char byte = 0;
  recv_exactly(guests[0].socket.get(), &byte, 1, Deadline::after(10s), "the caller");
  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(door_->strangers(), 0U);
}

TEST_F(DoorkeeperTest, SilentStrangersHoldNobodyUp) {
  open({.handshake_timeout = 1h});
  std::vector<Fd> silent;
  for (int i = 0; i < 30; ++i) silent.push_back(stranger());
  auto caller = call(1);
  EXPECT_EQ(wait_for_guest().size(), 1U);
  EXPECT_EQ(door_->strangers(), 30U);
  caller.get();
}

TEST_F(DoorkeeperTest, ARankThatWasDroppedInAFloodTriesAgain) {
  open({.stranger_limit = 2, .handshake_timeout = 1h});
  std::atomic<bool> is_over{false};
  auto flood = std::async(std::launch::async, [&] {
    const std::string hello =
        frame(Message::hello, encode(Hello{Purpose::wire, 0, random_nonce()}));
    std::vector<Fd> kept;
    for (int i = 0; i < 5000 && !is_over; ++i) {
      kept.push_back(stranger());
      // Every other one speaks, so that silence does not give it away.
      if (i % 2 == 0) ::send(kept.back().get(), hello.data(), hello.size(), MSG_NOSIGNAL);
      if (kept.size() > 100) kept.clear();
    }
  });
  for (int rank = 0; rank < 15; ++rank) {
    auto caller = call(rank);
    const auto guests = wait_for_guest();
    ASSERT_EQ(guests.size(), 1U);
    EXPECT_EQ(guests[0].hello.rank, rank);
    caller.get();
  }
  is_over = true;
  flood.get();
}

TEST_F(DoorkeeperTest, DropsSilentOnesFirst) {
  open({.stranger_limit = 3, .handshake_timeout = 1h});
  const Fd speaks = stranger();
  const std::string hello = frame(Message::hello, encode(Hello{Purpose::wire, 0, random_nonce()}));
  send_all(speaks.get(), hello, Deadline::after(10s), "the door");
  ASSERT_TRUE(is_ready(10'000));
  door_->admit();
  std::vector<Fd> silent;
  for (int i = 0; i < 10; ++i) silent.push_back(stranger());
  while (is_ready(0)) door_->admit();
  EXPECT_EQ(door_->strangers(), 3U);
  std::string challenge(4 + 1 + kNonceBytes + kProofBytes, '\0');
  recv_exactly(speaks.get(), challenge.data(), challenge.size(), Deadline::after(10s), "the door");
  char none = 0;
  EXPECT_LT(::recv(speaks.get(), &none, 1, MSG_DONTWAIT), 0);  // still there
}

TEST_F(DoorkeeperTest, RestsWhenDescriptorsRunOut) {
  open();
  const Fd socket = stranger();
  {
    const test::FewDescriptors none;
    ASSERT_TRUE(is_ready(10'000));
    EXPECT_TRUE(door_->admit().empty());
    EXPECT_FALSE(is_ready(0));  // it would spin otherwise
  }
  ASSERT_TRUE(is_ready(10'000));  // the timer
  while (door_->strangers() == 0 && is_ready(10'000)) door_->admit();
  EXPECT_EQ(door_->strangers(), 1U);
}

TEST_F(DoorkeeperTest, ThatDescriptorsHaveRunOutIsSaidOnce) {
  open();
  const Fd socket = stranger();
  testing::internal::CaptureStderr();
  {
    const test::FewDescriptors none;
    for (int tries = 0; tries < 4; ++tries) {  // the timer comes between them
      ASSERT_TRUE(is_ready(10'000));
      EXPECT_TRUE(door_->admit().empty());
    }
  }
  const std::string said = testing::internal::GetCapturedStderr();
  const auto first = said.find("no descriptors are left");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(said.find("no descriptors are left", first + 1), std::string::npos) << said;
}

TEST_F(DoorkeeperTest, AStrangersDescriptorServesARank) {
  open({.handshake_timeout = 1h});
  const Fd silent = stranger();
  ASSERT_TRUE(is_ready(10'000));
  door_->admit();
  ASSERT_EQ(door_->strangers(), 1U);
  const Deadline deadline = Deadline::after(10s);
  Caller caller(address_, Purpose::wire, 3, deadline, "the door");
  const test::FewDescriptors none;
  while (is_ready(0)) door_->admit();
  EXPECT_EQ(door_->strangers(), 1U);
  char byte = 0;
  EXPECT_EQ(::recv(silent.get(), &byte, 1, 0), 0);  // it had to go
}

TEST_F(DoorkeeperTest, RefusesWhoIsNotAwaited) {
  open({.expects = [](const Hello& hello) { return hello.rank == 1; }});
  const Deadline deadline = Deadline::after(10s);
  Caller caller(address_, Purpose::wire, 2, deadline, "the door");
  auto answer = std::async(std::launch::async, [&] { return caller.prove(secret_, deadline); });
  while (answer.wait_for(0s) != std::future_status::ready) {
    is_ready(10);
    EXPECT_TRUE(door_->admit().empty());
  }
  EXPECT_THROW(answer.get(), Error);
}

}  // namespace
}  // namespace kolo::comm::rendezvous
