// Whoever does not know the secret is got rid of, and the job goes on as if nobody had been there.
#include <gmock/gmock.h>

#include <future>

#include "comm/rendezvous/caller.h"
#include "kolo/error.h"
#include "rendezvous_fixture.h"

namespace kolo::comm::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StrangerTest : public RendezvousTest {
 protected:
  Fd connect() { return connect_tcp(server_->addresses()[0], Deadline::after(10s)); }

  static void say(const Fd& socket, std::string_view bytes) {
    send_all(socket.get(), bytes, Deadline::after(10s), "the server");
  }

  /// Whether the server hangs up (whatever it says before).
  static bool is_dropped(const Fd& socket) {
    const Deadline deadline = Deadline::after(10s);
    char chunk[256];
    while (!deadline.passed()) {
      ssize_t got = ::recv(socket.get(), chunk, sizeof chunk, 0);
      if (got == 0 || (got < 0 && errno == ECONNRESET)) return true;
      if (got < 0) {
        pollfd poll{socket.get(), POLLIN, 0};
        ::poll(&poll, 1, deadline.poll_timeout_ms());
      }
    }
    return false;
  }

  void expect_job_works() {
    auto other = std::async(std::launch::async, [this] {
      return client(1)->allgather("w", {0, 1}, "b", Deadline::after(10s));
    });
    EXPECT_THAT(client(0)->allgather("w", {0, 1}, "a", Deadline::after(10s)),
                ElementsAre("a", "b"));
    other.get();
  }
};

TEST_F(StrangerTest, NonsenseIsDropped) {
  start(2);
  const std::string hello = encode(Hello{Purpose::meetings, 0, std::string(kNonceBytes, 'n')});
  std::string wrong_magic = hello, wrong_version = hello, wrong_purpose = hello;
  wrong_magic[0] = 'X';
  wrong_version[4] = 99;
  wrong_purpose[6] = 7;
  const std::string nonsense[] = {
      "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
      std::string(4, '\0'),                          // an empty frame
      std::string(4, '\xff') + "x",                  // 4 GiB to come
      frame(Message::hello, std::string(200, 'x')),  // over the limit
      frame(Message::hello, "short"),
      frame(Message::hello, wrong_magic),
      frame(Message::hello, wrong_version),
      frame(Message::hello, wrong_purpose),
      frame(Message::hello, hello + "x"),
      frame(Message::hello, encode(Hello{Purpose::news, 2, std::string(kNonceBytes, 'n')})),
      frame(Message::hello, encode(Hello{Purpose::news, -1, std::string(kNonceBytes, 'n')})),
      frame(Message::meet, encode(Meet{"k", {0}, "", 1s})),
      frame(Message::hello, hello) + frame(Message::meet, encode(Meet{"k", {0}, "", 1s})),
      frame(Message::hello, hello) + frame(Message::hello, hello),
      frame(Message::hello, hello) + frame(Message::proof, std::string(kProofBytes, 'p')),
      frame(Message::hello, hello) + frame(Message::proof, ""),
  };
  for (const auto& text : nonsense) {
    Fd stranger = connect();
    say(stranger, text);
    EXPECT_TRUE(is_dropped(stranger)) << ::testing::PrintToString(text);
  }
  EXPECT_TRUE(server_->joined().empty());
  expect_job_works();
}

TEST_F(StrangerTest, AProofForOneRankOrConnectionIsNoneForAnother) {
  start(2);
  const std::string hello = encode(Hello{Purpose::news, 0, random_nonce()});
  const std::string other = encode(Hello{Purpose::news, 1, random_nonce()});
  // Answers the challenge as a rank would, but for another hello.
  Fd stranger = connect();
  say(stranger, frame(Message::hello, hello));
  std::string reply(4 + 1 + kNonceBytes + kProofBytes, '\0');
  recv_exactly(stranger.get(), reply.data(), reply.size(), Deadline::after(10s), "the server");
  const std::string challenge = reply.substr(5);
  const std::string right = answer_challenge(secret_, hello, challenge);
  const std::string nonce = challenge.substr(0, kNonceBytes);
  const std::string for_other =
      challenge.substr(0, kNonceBytes) + make_challenge(secret_, other).proof;
  EXPECT_THROW(answer_challenge(secret_, other, for_other), Error);
  // Sending the server's own proof back is no answer either.
  say(stranger, frame(Message::proof, challenge.substr(kNonceBytes)));
  EXPECT_TRUE(is_dropped(stranger));
  // The right answer of the first connection does not fit the next one's challenge.
  Fd again = connect();
  say(again, frame(Message::hello, hello) + frame(Message::proof, right));
  EXPECT_TRUE(is_dropped(again));
  EXPECT_TRUE(server_->joined().empty());
}

TEST_F(StrangerTest, SilenceIsDroppedInTime) {
  ServerOptions options;
  options.handshake_timeout = 50ms;
  start(2, std::move(options));
  Fd silent = connect(), half = connect();
  say(half, std::string("\x29\0", 2));
  EXPECT_TRUE(is_dropped(silent));
  EXPECT_TRUE(is_dropped(half));
  expect_job_works();
}

TEST_F(StrangerTest, ACrowdOfSilentOnesDisturbsNobody) {
  ServerOptions options;
  options.handshake_timeout = 60s;
  options.stranger_limit = 16;
  start(2, std::move(options));
  std::vector<Fd> crowd;
  for (int i = 0; i < 200; ++i) crowd.push_back(connect());
  expect_job_works();
  EXPECT_TRUE(is_dropped(crowd.front()));
  EXPECT_TRUE(eventually([&] { return server_->connections() <= 16; }));
}

TEST_F(StrangerTest, ARankWithAnotherSecretIsToldSo) {
  start(2);
  secret_ = Secret::random();
  try {
    client(0);
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_THAT(error.what(), HasSubstr("does not know the secret of this job"));
  }
  EXPECT_TRUE(server_->joined().empty());
}

TEST_F(StrangerTest, ARankOfAnotherVersionIsToldSoAtOnce) {
  start(2);
  std::string hello = encode(Hello{Purpose::meetings, 0, std::string(kNonceBytes, 'n')});
  hello[4] = 99;
  Fd old = connect();
  say(old, frame(Message::hello, hello));
  const Frame answer =
      receive_frame(old.get(), kHandshakeLimit, Deadline::after(10s), "the server");
  EXPECT_EQ(answer.type, static_cast<std::uint8_t>(Message::goodbye));
  EXPECT_TRUE(is_dropped(old));
  // To a rank that answer is an error, and no reason to try again.
  Fd listener = listen_tcp(SocketAddress::loopback());
  Caller caller(local_address_of(listener.get()), Purpose::news, 0, Deadline::after(10s), "it");
  Fd other(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  send_all(other.get(), frame(Message::goodbye, ""), Deadline::after(10s), "the rank");
  try {
    static_cast<void>(caller.prove(secret_, Deadline::after(10s)));
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_FALSE(Caller::was_dropped(error));
    EXPECT_THAT(error.what(), HasSubstr("in the same version"));
  }
}

TEST_F(StrangerTest, AClientEndsWhenWhatAnswersIsNoServer) {
  // Something that accepts and says nothing.
  Fd listener = listen_tcp(SocketAddress::loopback());
  ClientOptions options{local_address_of(listener.get()), secret_, Topology(), "test", -1, nullptr};
  try {
    Client client(options, Deadline::after(50ms));
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
  }
  // Nothing there at all.
  options.server = local_address_of(listener.get());
  listener.reset();
  try {
    Client client(options, Deadline::after(10s));
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
  }
}

TEST_F(StrangerTest, ARankThatBreaksTheProtocolHurtsItselfAlone) {
  start(2);
  auto a = client(0);
  const std::string hello = encode(Hello{Purpose::meetings, 1, random_nonce()});
  Fd rude = connect();
  say(rude, frame(Message::hello, hello));
  std::string reply(4 + 1 + kNonceBytes + kProofBytes, '\0');
  recv_exactly(rude.get(), reply.data(), reply.size(), Deadline::after(10s), "the server");
  say(rude, frame(Message::proof, answer_challenge(secret_, hello, reply.substr(5))));
  ASSERT_TRUE(eventually([&] { return server_->joined().contains(1); }));
  say(rude, frame(Message::meet, std::string("\xff\xff\xff\xff", 4)));
  EXPECT_TRUE(is_dropped(rude));
  expect_job_works();
}

}  // namespace
}  // namespace kolo::comm::rendezvous
