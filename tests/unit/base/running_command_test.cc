#include "base/running_command.h"

#include <gmock/gmock.h>
#include <poll.h>

#include "base/files.h"
#include "base/pipe.h"
#include "kolo/error.h"

namespace kolo {
namespace {

using namespace std::chrono_literals;

CommandOptions script(const std::string& text) {
  CommandOptions options;
  options.argv = {"/bin/sh", "-c", text};
  options.environment = current_environment();
  return options;
}

/// Works until `condition` holds, as an owner does that polls.
template <typename Condition>
void work_until(RunningCommand& command, Condition condition) {
  while (!condition(command.work())) {
    pollfd poll{command.fd(), POLLIN, 0};
    ::poll(&poll, 1, command.fd() < 0 ? 10 : -1);
  }
}

TEST(RunningCommandTest, OutputIsThereBeforeTheEnd) {
  Pipe input = make_pipe();
  CommandOptions options = script("echo first; read line; echo \"$line\"; exit 3");
  options.standard_input = input.read.get();
  options.gathers_errors = false;
  RunningCommand command(std::move(options));
  work_until(command, [&](bool has_ended) {
    EXPECT_FALSE(has_ended);
    return command.result().output == "first\n";
  });
  EXPECT_FALSE(command.work());
  write_all(input.write.get(), "second\n", "a pipe");
  work_until(command, [](bool has_ended) { return has_ended; });
  EXPECT_EQ(command.result().output, "first\nsecond\n");
  EXPECT_EQ(exit_code_of(command.result().status), 3);
  EXPECT_TRUE(command.work());
}

TEST(RunningCommandTest, WhatPrintsWithoutEndIsTakenInParts) {
  CommandOptions options = script("exec yes");
  options.gathers_errors = false;
  RunningCommand command(std::move(options));
  work_until(command, [&](bool) { return command.result().output.size() > 1'000'000; });
  EXPECT_LE(command.result().output.size(), 1'000'000U + 65'536);
}

TEST(RunningCommandTest, EndsWithItsProcessGroup) {
  Pipe held = make_pipe();
  {
    CommandOptions options = script("sleep 1000 & echo ready; wait");
    options.standard_error = held.write.get();
    options.gathers_errors = false;
    options.own_process_group = true;
    RunningCommand command(std::move(options));
    held.write.reset();
    work_until(command, [&](bool) { return command.result().output == "ready\n"; });
  }
  char byte = 0;
  EXPECT_EQ(::read(held.read.get(), &byte, 1), 0) << "the child of the script is gone, too";
}

TEST(RunningCommandTest, OneThatHasClosedItsOutputIsNotWaitedForWithoutEnd) {
  try {
    run_command({"sh", "-c", "exec >&- 2>&- sleep 1000"}, Deadline::after(50ms));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
  }
}

TEST(RunningCommandTest, ErrorsOfOneAreTakenWhileTheOtherIsWaitedFor) {
  Pipe data = make_pipe();
  CommandOptions from = script("head -c 300000 /dev/zero >&2; echo data"), to = script("cat");
  from.standard_output = data.write.get();
  from.gathers_output = false;
  to.standard_input = data.read.get();
  RunningCommand first(std::move(from));
  data.write.reset();
  RunningCommand second(std::move(to));
  data.read.reset();
  RunningCommand::wait({&first, &second}, Deadline::after(10min));
  EXPECT_EQ(first.result().errors.size(), 300'000U);
  EXPECT_EQ(second.result().output, "data\n");
}

}  // namespace
}  // namespace kolo
