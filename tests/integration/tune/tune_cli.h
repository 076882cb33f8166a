// The command `kolo tune` and its siblings, in a directory of their own.
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

using namespace std::chrono_literals;

class TuneCli : public testing::Test {
 protected:
  TuneCli() {
    ::setenv("KOLO_RESULTS", scratch_.path().c_str(), 1);
    ::setenv("KOLO_STORAGE", (scratch_.path() / "kolo.db").c_str(), 1);
    const std::string bin = std::filesystem::path(KOLO_BINARY).parent_path().string();
    ::setenv("PATH", (bin + ":" + ::getenv("PATH")).c_str(), 1);
    write("space.yaml", "x: {uniform: [0, 1]}\nkind: {grid_search: [a, b]}\n");
  }
  std::filesystem::path write(const std::string& name, const std::string& text) {
    const auto path = scratch_.path() / name;
    std::ofstream(path) << text;
    return path;
  }
  CommandResult kolo(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), KOLO_BINARY);
    return run_command(arguments, Deadline::after(60s));
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
    const Deadline deadline = Deadline::after(60s);
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

}  // namespace kolo::test
