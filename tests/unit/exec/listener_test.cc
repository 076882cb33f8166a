// A custodian that stands on a host and serves several owners, who must prove who they are.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/errors.h"
#include "base/socket.h"
#include "base/subprocess.h"
#include "exec/custodian.h"
#include "owner.h"

namespace kolo::exec {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class ListenerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Fd listener = listen_tcp(SocketAddress::loopback());
    address_ = local_address_of(listener.get());
    pid_ = ::fork();  // this process has one thread
    if (pid_ != 0) return;
    int status = 1;
    try {
      Custodian custodian;
      custodian.listen(std::move(listener), secret_);
      status = custodian.run();
    } catch (const std::exception&) {
    }
    ::_exit(status);
  }
  void TearDown() override {
    ::kill(pid_, SIGTERM);
    int status = -1;
    ASSERT_EQ(::waitpid(pid_, &status, 0), pid_);
    EXPECT_EQ(exit_code_of(status), 0);
  }

  Fd connect() { return connect_tcp(address_, Deadline::after(10s)); }
  std::unique_ptr<Link> link(const Secret& secret, std::chrono::milliseconds lease = 0ms) {
    return Link::to_socket(connect(), secret, "test", "owner", lease, Deadline::after(10s));
  }

  Secret secret_ = Secret::random();
  SocketAddress address_;
  pid_t pid_ = -1;
};

TEST_F(ListenerTest, TwoOwnersDoNotSeeEachOther) {
  Owner first(link(secret_)), second(link(secret_));
  first.link().start(Owner::shell(1, "echo of the first; sleep 1000"));
  second.link().start(Owner::shell(1, "echo of the second; sleep 1000"));
  ASSERT_TRUE(first.wait_for_output(1, "of the first"));
  ASSERT_TRUE(second.wait_for_output(1, "of the second"));
  // The first one's end ends its task and no other.
  first.close();
  second.link().start(Owner::shell(2,
                                   "while pgrep -fx 'sh -c echo of the [f]irst; sleep 1000'"
                                   " >/dev/null; do sleep 0.01; done; echo gone"));
  ASSERT_TRUE(second.wait_for_output(2, "gone"));
  EXPECT_FALSE(second.ends.contains(1));
  second.link().kill(1);
  EXPECT_TRUE(second.wait_for_end(1));
}

TEST_F(ListenerTest, AWrongSecretIsRefused) {
  try {
    link(Secret::random());
    FAIL() << "the wrong secret was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::failed_precondition);
    EXPECT_THAT(error.message(), HasSubstr("secret"));
  }
}

TEST_F(ListenerTest, OrdersBeforeTheClaimAreNotObeyed) {
  Channel stranger(connect());
  stranger.expect(kGreeting);
  stranger.send(frame(Kind::start, encode(Owner::shell(1, "touch /tmp/never"))));
  stranger.flush();
  const Deadline deadline = Deadline::after(10s);
  while (!stranger.closed() && !deadline.passed()) {
    pollfd poll{stranger.read_fd(), POLLIN, 0};
    ::poll(&poll, 1, deadline.poll_timeout_ms());
    stranger.receive();
  }
  EXPECT_TRUE(stranger.closed());
}

TEST_F(ListenerTest, SilentStrangersDoNotKeepOwnersOut) {
  std::vector<Fd> strangers;
  for (int i = 0; i < 200; ++i) strangers.push_back(connect());
  Owner owner(link(secret_));
  owner.link().start(Owner::shell(1, "echo served"));
  EXPECT_TRUE(owner.wait_for_output(1, "served"));
}

TEST_F(ListenerTest, AnOwnerThatIsSilentForLongerThanItsLeaseIsLost) {
  Owner silent(link(secret_, 300ms)), speaking(link(secret_, 60s));
  silent.link().start(Owner::shell(1, "echo up; sleep 1000"));
  speaking.link().start(Owner::shell(1, "echo up; sleep 1000"));
  ASSERT_TRUE(silent.wait_for_output(1, "up"));
  ASSERT_TRUE(speaking.wait_for_output(1, "up"));
  EXPECT_TRUE(silent.wait_for_close());
  EXPECT_FALSE(speaking.ends.contains(1));
  speaking.link().kill(1);
  EXPECT_TRUE(speaking.wait_for_end(1));
}

}  // namespace
}  // namespace kolo::exec
