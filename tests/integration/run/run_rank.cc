// A rank for the tests of `kolo run`: run_rank MODE
//   meet     init, one allreduce, print what it knows
//   again    init and shutdown, many times
//   wait     meet, say "ready", then barriers until a peer is lost; print how that was told
//   secret   meet, say "ready" and sleep
//   behind FILE   the last rank comes to a barrier when the file is there, the others at once
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "kolo/kolo.h"

namespace {

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

void meet() {
  kolo::init();
  const int sum = kolo::world().allreduce(kolo::rank() + 1, kolo::ReduceOp::sum);
  say("rank " + std::to_string(kolo::rank()) + " of " + std::to_string(kolo::size()) + ", local " +
      std::to_string(kolo::local_rank()) + " of " + std::to_string(kolo::local_size()) +
      ", cross " + std::to_string(kolo::cross_rank()) + " of " +
      std::to_string(kolo::cross_size()) + ", sum " + std::to_string(sum));
}

void be_behind(const char* file) {
  kolo::init();
  while (kolo::rank() == kolo::size() - 1 && ::access(file, F_OK) != 0) ::usleep(10'000);
  kolo::world().barrier();
}

int wait_for_loss() {
  kolo::init();
  kolo::world().barrier();
  say("ready");
  try {
    while (true) kolo::world().barrier();
  } catch (const kolo::Error& error) {
    say(std::string(to_string(error.code())) + " of rank " +
        std::to_string(error.rank().value_or(-1)) + ": " + error.message());
    return 7;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "meet";
  if (std::strcmp(mode, "meet") == 0) {
    meet();
  } else if (std::strcmp(mode, "again") == 0) {
    for (int i = 0; i < 200; ++i) {
      kolo::init();
      kolo::shutdown();
    }
    meet();
  } else if (std::strcmp(mode, "wait") == 0) {
    return wait_for_loss();
  } else if (std::strcmp(mode, "behind") == 0 && argc > 2) {
    be_behind(argv[2]);
  } else if (std::strcmp(mode, "secret") == 0) {
    meet();
    say("ready");
    ::pause();
  } else {
    return 2;
  }
  return 0;
}
