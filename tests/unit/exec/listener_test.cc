// A custodian that stands on a host and serves several owners, who must prove who they are.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/errors.h"
#include "base/files.h"
#include "base/socket.h"
#include "base/subprocess.h"
#include "exec/custodian.h"
#include "exec/start.h"
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
      custodian.listen(std::move(listener), {secret_, {2, 1, {{"licences", 3}}}});
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
    auto made = Link::to_socket(connect(), secret, "test", "owner", lease);
    std::ignore = made->wait_for_hello(Deadline::after(10s));
    return made;
  }

  Secret secret_ = Secret::random();
  SocketAddress address_;
  pid_t pid_ = -1;
};

/// As `kolo up` starts it: behind a guard, which is the process that people know.
TEST(StandingCustodianTest, SigtermEndsItsTasksFirstAndSaysSo) {
  const TempDir scratch;
  const auto note = scratch.path() / "note", log = scratch.path() / "log";
  write_file_atomically(note, "here");
  const Secret secret = Secret::random();
  Fd listener = listen_tcp(SocketAddress::loopback());
  const auto address = local_address_of(listener.get());
  Standing standing{.secret = secret, .has = {2, 0, {}}};
  standing.note = note;
  standing.log = log;
  const pid_t guard = start_standing_custodian(std::move(listener), std::move(standing), Fd());
  auto link =
      Link::to_socket(connect_tcp(address, Deadline::after(10s)), secret, "test", "owner", 0ms);
  std::ignore = link->wait_for_hello(Deadline::after(10s));
  Owner owner(std::move(link));
  owner.link().start(
      Owner::shell(1, fmt::format("trap 'echo in peace >{}; exit' TERM; echo runs; while :; do "
                                  "sleep 0.02; done",
                                  (scratch.path() / "task").string())));
  ASSERT_TRUE(owner.wait_for_output(1, "runs"));
  ::kill(guard, SIGTERM);
  int status = -1;
  ASSERT_EQ(::waitpid(guard, &status, 0), guard);
  EXPECT_EQ(exit_code_of(status), 0);
  EXPECT_EQ(read_file(scratch.path() / "task"), "in peace\n");
  EXPECT_FALSE(std::filesystem::exists(note));
  EXPECT_THAT(read_file(log), HasSubstr("SIGTERM has come: ending 1 task of 1 owner"));
}

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

// A study that is resumed on a cluster, while a trial of its last session still takes its time.
TEST_F(ListenerTest, TasksOfAFamilyBeginWhenThoseOfItsLastOwnerHaveEnded) {
  const TempDir dir;
  const std::string go = (dir.path() / "go").string(), over = (dir.path() / "over").string();
  Owner first(link(secret_)), second(link(secret_)), stranger(link(secret_));
  first.link().set_family("a study");
  Task slow = Owner::shell(1, "trap 'until [ -e " + go + " ]; do sleep 0.01; done; : > " + over +
                                  "; exit' TERM; echo up; while :; do sleep 0.01; done");
  slow.grace.owner_lost = 60s;
  first.link().start(slow);
  ASSERT_TRUE(first.wait_for_output(1, "up"));
  first.close();
  second.link().set_family("a study");
  stranger.link().set_family("another");
  const std::string look = "[ -e " + over + " ] && echo after || echo before";
  second.link().start(Owner::shell(1, look));
  second.link().start(Owner::shell(2, "exec sleep 1000"));
  second.link().kill(2);
  stranger.link().start(Owner::shell(1, look));
  EXPECT_TRUE(stranger.wait_for_output(1, "before"));
  write_file_atomically(go, "");
  ASSERT_TRUE(second.wait_for_end(1));
  EXPECT_EQ(second.out[1], "after\n");
  EXPECT_TRUE(second.wait_for_end(2));
}

TEST_F(ListenerTest, AWrongSecretIsRefused) {
  try {
    link(Secret::random());
    FAIL() << "the wrong secret was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_THAT(error.message(), HasSubstr("another key"));
  }
}

/// Whether the custodian closes the connection; what it says before goes to `said`.
bool is_closed_after(Fd socket, std::string_view bytes, std::string& said) {
  const Deadline deadline = Deadline::after(10s);
  send_all(socket.get(), bytes, deadline, "the custodian");
  for (;;) {
    char chunk[256];
    const ssize_t got = ::recv(socket.get(), chunk, sizeof chunk, 0);
    if (got > 0) said.append(chunk, static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
    pollfd poll{socket.get(), POLLIN, 0};
    if (::poll(&poll, 1, deadline.poll_timeout_ms()) == 0) return false;
  }
}

TEST_F(ListenerTest, StrangersLearnNothing) {
  std::string said;
  const std::string order = frame(Kind::start, encode(Owner::shell(1, "touch /tmp/never")));
  EXPECT_TRUE(is_closed_after(connect(), order, said));
  EXPECT_TRUE(is_closed_after(connect(), "GET / HTTP/1.1\r\n\r\n", said));
  EXPECT_TRUE(is_closed_after(connect(), std::string(100'000, '\0'), said));
  EXPECT_EQ(said, "");
}

TEST_F(ListenerTest, OrdersBeforeTheClaimAreNotObeyed) {
  Channel hasty(connect(), SecureStream(SecureStream::Side::caller, secret_));
  hasty.send(frame(Kind::start, encode(Owner::shell(1, "touch /tmp/never"))));
  const Deadline deadline = Deadline::after(10s);
  while (!hasty.closed() && !deadline.passed()) {
    hasty.flush();
    pollfd polls[] = {{hasty.read_fd(), POLLIN, 0}, {hasty.write_fd(), POLLOUT, 0}};
    ::poll(polls, 2, deadline.poll_timeout_ms());
    EXPECT_TRUE(hasty.receive().empty());
  }
  EXPECT_TRUE(hasty.closed());
}

TEST_F(ListenerTest, SilentStrangersDoNotKeepOwnersOut) {
  std::vector<Fd> strangers;
  for (int i = 0; i < 200; ++i) strangers.push_back(connect());
  Owner owner(link(secret_));
  owner.link().start(Owner::shell(1, "echo served"));
  EXPECT_TRUE(owner.wait_for_output(1, "served"));
}

TEST_F(ListenerTest, StrangersThatAreSilentMakeRoomFirst) {
  // It has begun to speak, and is a stranger until the rest has come.
  const Fd slow = connect();
  SecureStream caller(SecureStream::Side::caller, secret_);
  const std::string opening = caller.take_outgoing();
  write_all(slow.get(), opening.substr(0, 4), "the opening");
  const auto served = [this] {
    Owner owner(link(secret_));
    owner.link().start(Owner::shell(1, "echo served"));
    EXPECT_TRUE(owner.wait_for_output(1, "served"));
  };
  served();  // so that the slow one has been heard
  std::vector<Fd> strangers;
  for (int i = 0; i < 200; ++i) strangers.push_back(connect());
  served();
  write_all(slow.get(), opening.substr(4), "the rest");
  pollfd answer{slow.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&answer, 1, 10'000), 1);
  char first = 0;
  EXPECT_EQ(::read(slow.get(), &first, 1), 1);
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

TEST_F(ListenerTest, NothingIsPromisedTwice) {
  Owner first(link(secret_)), second(link(secret_));
  first.link().reserve(1, {2, 0, {}});
  ASSERT_TRUE(first.wait([&] { return first.reserved.contains(1); }));
  second.link().reserve(1, {1, 0, {}});
  ASSERT_TRUE(second.wait([&] { return second.refused.contains(1); }));
  EXPECT_THAT(second.refused.at(1), HasSubstr("owner has 2 slots"));
  first.link().release(1);
  ASSERT_TRUE(second.wait([&] { return second.holdings.free.slots == 2; }));
  second.link().reserve(2, {2, 1, {}});
  EXPECT_TRUE(second.wait([&] { return second.reserved.contains(2); }));
}

TEST_F(ListenerTest, WhatALostOwnerHadIsFreeWhenItsTasksAreGone) {
  Owner first(link(secret_)), second(link(secret_));
  first.link().reserve(1, {2, 0, {}});
  ASSERT_TRUE(first.wait([&] { return first.reserved.contains(1); }));
  Task stubborn = Owner::shell(1, "trap '' TERM; echo $$ up; while :; do sleep 0.05; done");
  stubborn.reservation = 1;
  stubborn.grace.owner_lost = 200ms;
  first.link().start(stubborn);
  ASSERT_TRUE(first.wait_for_output(1, "up"));
  const pid_t process = std::stoi(first.out[1]);
  ASSERT_TRUE(second.wait([&] { return second.holdings.held.size() == 1; }));
  first.close();
  EXPECT_TRUE(second.wait([&] { return second.holdings.free.slots == 2; }));
  EXPECT_NE(::kill(process, 0), 0);
}

TEST_F(ListenerTest, ATaskHasTheDevicesOfItsReservationAndNoOther) {
  Owner owner(link(secret_));
  Task task = Owner::shell(1, "echo gpus $CUDA_VISIBLE_DEVICES");
  task.reservation = 9;
  owner.link().start(task);
  ASSERT_TRUE(owner.wait_for_end(1));
  EXPECT_THAT(owner.ends.at(1).error, HasSubstr("not held"));
  owner.link().reserve(9, {1, 1, {{"licences", 3}}});
  owner.link().start(task);
  EXPECT_TRUE(owner.wait_for_output(1, "gpus 0"));
}

TEST_F(ListenerTest, ADrainedHostTakesNothingNew) {
  Owner owner(link(secret_));
  owner.link().drain(true);
  owner.link().reserve(1, {1, 0, {}});
  ASSERT_TRUE(owner.wait([&] { return owner.refused.contains(1); }));
  EXPECT_THAT(owner.refused.at(1), HasSubstr("drained"));
  owner.link().drain(false);
  owner.link().reserve(1, {1, 0, {}});
  EXPECT_TRUE(owner.wait([&] { return owner.reserved.contains(1); }));
}

TEST_F(ListenerTest, AHostTellsHowBusyItIs) {
  Owner owner(link(secret_));
  owner.link().measure();
  ASSERT_TRUE(owner.wait([&] { return owner.load.memory_bytes > 0; }));
  EXPECT_GT(owner.load.available_bytes, 0U);
  EXPECT_LT(owner.load.available_bytes, owner.load.memory_bytes);
}

TEST_F(ListenerTest, ShuttingDownEndsEverybodysTasks) {
  Owner first(link(secret_)), second(link(secret_));
  first.link().start(Owner::shell(1, "echo up; sleep 1000"));
  ASSERT_TRUE(first.wait_for_output(1, "up"));
  second.link().shut_down();
  EXPECT_TRUE(second.wait_for_close());
  EXPECT_TRUE(first.wait_for_close());
}

/// Waits for the answer to `listen`.
Listening answer_of(Link& link) {
  const Deadline deadline = Deadline::after(10s);
  while (!link.closed() && !deadline.passed()) {
    for (const auto& event : link.receive())
      if (const auto* listening = std::get_if<Listening>(&event)) return *listening;
    link.flush();
    pollfd polls[] = {{link.read_fd(), POLLIN, 0}, {link.write_fd(), POLLOUT, 0}};
    ::poll(polls, 2, deadline.poll_timeout_ms());
  }
  return {"", "no answer"};
}

TEST(LentCustodianTest, OthersUseItAsLongAsItsOwnerIsThere) {
  auto own = Link::to_this_machine();
  std::ignore = own->wait_for_hello(Deadline::after(10s));
  const Secret secret = Secret::random();
  own->listen({secret, {2, 0, {}}});
  const Listening listening = answer_of(*own);
  ASSERT_EQ(listening.error, "");
  auto guest =
      Link::to_socket(connect_tcp(SocketAddress::parse(listening.address), Deadline::after(10s)),
                      secret, "test", "guest", 0ms);
  std::ignore = guest->wait_for_hello(Deadline::after(10s));
  Owner owner(std::move(guest));
  owner.link().reserve(1, {1, 0, {}});
  auto task = Owner::shell(1, "echo it runs; sleep 1000");
  task.reservation = 1;
  owner.link().start(task);
  ASSERT_TRUE(owner.wait_for_output(1, "it runs"));
  // The one who started it is gone, and everything with it.
  own.reset();
  const Deadline deadline = Deadline::after(10s);
  while (!owner.link().closed() && !deadline.passed()) {
    owner.link().receive();
    pollfd poll{owner.link().read_fd(), POLLIN, 0};
    ::poll(&poll, 1, 100);
  }
  EXPECT_TRUE(owner.link().closed());
}

}  // namespace
}  // namespace kolo::exec
