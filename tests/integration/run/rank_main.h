// main() of a rank program: runs it, leaves the group, and says what went wrong.
#pragma once

#include <kolo/kolo.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace kolo::test {

inline int rank_main(const char* name, int (*run)(int, char**), int argc, char** argv) {
  try {
    const int status = run(argc, argv);
    kolo::shutdown();
    return status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return EXIT_FAILURE;
  }
}

}  // namespace kolo::test
