// Commands around studies, run in a folder of their own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"

namespace kolo::test {

class TuneCli : public testing::Test {
 protected:
  TuneCli() {
    ::setenv("KOLO_RESULTS", scratch_.path().c_str(), 1);
    ::setenv("KOLO_STORAGE", (scratch_.path() / "kolo.db").c_str(), 1);
    const std::string bin = std::filesystem::path(KOLO_BINARY).parent_path().string();
    ::setenv("PATH", (bin + ":" + ::getenv("PATH")).c_str(), 1);
    write("space.yaml", "x: {uniform: [0, 1]}\nkind: {grid_search: [a, b]}\n");
  }
  ~TuneCli() override {
    for (const char* name : {"KOLO_SSH", "CALLS", "ONCE"}) ::unsetenv(name);
  }
  std::filesystem::path write(const std::string& name, const std::string& text) {
    const auto path = scratch_.path() / name;
    std::ofstream(path) << text;
    return path;
  }
  /// Hosts of --hosts are this one, reached by a shell instead of ssh, after some lines of script.
  void stand_in_for_ssh(const std::string& before = "") {
    const auto ssh =
        write("ssh", "#!/bin/sh\n" + before + "for command; do :; done; exec sh -c \"$command\"\n");
    std::filesystem::permissions(ssh, std::filesystem::perms::owner_all);
    ::setenv("KOLO_SSH", ssh.c_str(), 1);
  }
  /// The same host is lost when kDiesOnce runs there, and the first attempt to reach it again
  /// fails. $CALLS has a line for each attempt.
  void stand_in_for_ssh_that_fails_once() {
    stand_in_for_ssh(
        "echo >>$CALLS; [ $(wc -l <$CALLS) = 2 ] && exit 255\n"
        "export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'\n");
    ::setenv("CALLS", (scratch_.path() / "calls").c_str(), 1);
    ::setenv("ONCE", (scratch_.path() / "once").c_str(), 1);
  }
  static constexpr const char* kDiesOnce =
      "mkdir $ONCE 2>/dev/null && { kill -9 $PPID; sleep 60; }; ";
  CommandResult kolo(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), KOLO_BINARY);
    return run_command(arguments, Deadline::after(std::chrono::seconds(60)));
  }
  CommandResult tune(std::vector<std::string> arguments, const std::vector<std::string>& program) {
    std::vector<std::string> all{"tune", "--space", (scratch_.path() / "space.yaml").string()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    all.emplace_back("--");
    all.insert(all.end(), program.begin(), program.end());
    return kolo(all);
  }
  Json trials(const std::string& study) {
    const auto result = kolo({"trials", study, "--json"});
    EXPECT_TRUE(result.ok()) << result.errors;
    return parse_json(result.output, "trials");
  }

  /// Reads what `kolo tune --json` writes up to such an event; false when it ends before.
  static bool wait_for_event(int fd, const std::string& event) {
    const std::string wanted = fmt::format("\"event\":\"{}\"", event);
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    std::string line;
    for (pollfd ready{fd, POLLIN, 0}; ::poll(&ready, 1, deadline.poll_timeout_ms()) > 0;) {
      char byte = 0;
      if (::read(fd, &byte, 1) != 1) return false;
      if (byte != '\n') {
        line += byte;
        continue;
      }
      if (line.find(wanted) != std::string::npos) return true;
      line.clear();
    }
    return false;
  }

  TempDir scratch_{"kolo-cli"};
};

}  // namespace kolo::test
