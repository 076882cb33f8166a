#include "base/pipe.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace kolo {
namespace {

volatile sig_atomic_t broken_pipes = 0;

TEST(Pipe, WritingWithoutAReaderIsNoSignal) {
  struct sigaction counts {
  }, before{};
  counts.sa_handler = [](int) { broken_pipes = broken_pipes + 1; };
  ASSERT_EQ(::sigaction(SIGPIPE, &counts, &before), 0);
  Pipe pipe = make_pipe();
  EXPECT_EQ(write_to_pipe(pipe.write.get(), "abc"), 3);
  pipe.read.reset();
  EXPECT_EQ(write_to_pipe(pipe.write.get(), "abc"), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(broken_pipes, 0);
  // The signal of somebody else arrives as before.
  EXPECT_EQ(::write(pipe.write.get(), "abc", 3), -1);
  EXPECT_EQ(broken_pipes, 1);
  ASSERT_EQ(::sigaction(SIGPIPE, &before, nullptr), 0);
}

TEST(Pipe, ASignalThatWaitedAlreadyStaysWaiting) {
  sigset_t broken, before, waiting;
  ::sigemptyset(&broken);
  ::sigaddset(&broken, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &broken, &before);
  ::raise(SIGPIPE);
  Pipe pipe = make_pipe();
  pipe.read.reset();
  EXPECT_EQ(write_to_pipe(pipe.write.get(), "abc"), -1);
  ::sigpending(&waiting);
  EXPECT_EQ(::sigismember(&waiting, SIGPIPE), 1);
  const timespec at_once{};
  EXPECT_EQ(::sigtimedwait(&broken, nullptr, &at_once), SIGPIPE);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace kolo
