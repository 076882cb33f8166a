#include "base/socket.h"

#include <gmock/gmock.h>
#include <poll.h>

#include <future>

#include "kolo/error.h"

namespace kolo {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

TEST(SocketAddressTest, IsReadAsItIsWritten) {
  for (const char* text :
       {"127.0.0.1:80", "[::1]:65535", "10.0.0.7:1", "[fe80::1]:9", "@kolo", "@"})
    EXPECT_EQ(SocketAddress::parse(text).str(), text);
  EXPECT_EQ(SocketAddress::parse("[::1]:7").host(), "::1");
  EXPECT_EQ(SocketAddress::parse("[::1]:7").port(), 7);
}

TEST(SocketAddressTest, RefusesWhatIsNone) {
  for (const auto& text : {""s, "127.0.0.1"s, "127.0.0.1:"s, "127.0.0.1:x"s, "127.0.0.1:70000"s,
                           "localhost:80"s, ":80"s, "[::1]"s, "@"s + std::string(108, 'x')}) {
    try {
      SocketAddress::parse(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
}

TEST(SocketAddressTest, KnowsItsKind) {
  EXPECT_TRUE(SocketAddress::from_numeric("127.3.2.1").is_loopback());
  EXPECT_TRUE(SocketAddress::from_numeric("::1").is_loopback());
  EXPECT_FALSE(SocketAddress::from_numeric("10.0.0.1").is_loopback());
  EXPECT_TRUE(SocketAddress::parse("10.0.0.1:1").same_host(SocketAddress::parse("10.0.0.1:2")));
  EXPECT_TRUE(SocketAddress::from_numeric("::ffff:10.0.0.1")
                  .same_host(SocketAddress::from_numeric("10.0.0.1")));
  EXPECT_FALSE(
      SocketAddress::from_numeric("10.0.0.1").same_host(SocketAddress::from_numeric("10.0.0.2")));
}

class ConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    listener_ = listen_tcp(SocketAddress::loopback());
    address_ = local_address_of(listener_.get());
  }
  Fd accept() const {
    pollfd poll{listener_.get(), POLLIN, 0};
    ::poll(&poll, 1, 10'000);
    return Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  }
  Fd listener_;
  SocketAddress address_;
};

TEST_F(ConnectionTest, CarriesMoreThanFitsInItsBuffers) {
  Fd client = connect_tcp(address_, Deadline::after(10s));
  Fd server = accept();
  const std::string sent(20 << 20, 'x');
  auto sending = std::async(std::launch::async, [&] {
    send_all(client.get(), sent, Deadline::after(20s), "the server");
  });
  std::string got(sent.size(), '\0');
  recv_exactly(server.get(), got.data(), got.size(), Deadline::after(20s), "the client");
  sending.get();
  EXPECT_TRUE(got == sent);
}

TEST(LocalSocketTest, ConnectsByTheNameThatTheKernelGave) {
  Fd listener = listen_tcp(SocketAddress::parse("@"));
  const auto address = local_address_of(listener.get());
  EXPECT_EQ(address.port(), 0);
  EXPECT_EQ(address.str().front(), '@');
  EXPECT_GT(address.str().size(), 1U);
  Fd client = connect_tcp(SocketAddress::parse(address.str()), Deadline::after(10s));
  Fd server(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  send_all(client.get(), "hello", Deadline::after(10s), "the server");
  std::string got(5, '\0');
  recv_exactly(server.get(), got.data(), got.size(), Deadline::after(10s), "the client");
  EXPECT_EQ(got, "hello");
  listener = Fd();
  try {
    static_cast<void>(connect_tcp(address, Deadline::after(10s)));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_THAT(error.what(), testing::HasSubstr(address.str()));
  }
}

TEST_F(ConnectionTest, WaitsEndInTimeAndNameThePeer) {
  Fd client = connect_tcp(address_, Deadline::after(10s));
  char byte;
  try {
    recv_exactly(client.get(), &byte, 1, Deadline::after(20ms), "the oracle");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("the oracle"));
  }
  EXPECT_THROW(send_all(client.get(), std::string(64 << 20, 'x'), Deadline::after(20ms), "it"),
               Error);
}

TEST_F(ConnectionTest, AClosedPeerIsUnavailable) {
  Fd client = connect_tcp(address_, Deadline::after(10s));
  accept().reset();
  char byte;
  try {
    recv_exactly(client.get(), &byte, 1, Deadline::after(10s), "it");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
  }
  listener_.reset();
  try {
    connect_tcp(address_, Deadline::after(10s));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
  }
}

TEST(NetworkTest, KnowsThisMachine) {
  EXPECT_EQ(interface_address("lo").host(), "127.0.0.1");
  EXPECT_EQ(interface_address("127.0.0.1").host(), "127.0.0.1");
  EXPECT_TRUE(is_own_address(SocketAddress::from_numeric("127.0.0.1")));
  EXPECT_FALSE(is_own_address(SocketAddress::from_numeric("192.0.2.77")));
  try {
    interface_address("nope0");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("lo (127.0.0.1)"));
  }
  auto towards = address_towards(SocketAddress::from_numeric("127.0.0.1"));
  ASSERT_TRUE(towards.has_value());
  EXPECT_TRUE(towards->is_loopback());
  EXPECT_FALSE(resolve_host("localhost").empty());
  EXPECT_TRUE(resolve_host("-not a host-").empty());
}

}  // namespace
}  // namespace kolo
