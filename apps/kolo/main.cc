// kolo: the command line.
#include <fmt/format.h>

#include "commands.h"
#include "kolo/version.h"

int main(int argc, char** argv) {
  const kolo::cli::Arguments arguments(argv + 1, argv + argc);
  if (!arguments.empty() &&
      (arguments[0] == "--version" || arguments[0] == "-v" || arguments[0] == "version")) {
    fmt::print("kolo {}\n", KOLO_VERSION);
    return 0;
  }
  return kolo::cli::run_program(kolo::app::kKolo, arguments);
}
