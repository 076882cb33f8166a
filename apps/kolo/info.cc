// kolo info = kolo run --check-build
#include <cstdlib>

#include "base/env.h"
#include "base/errors.h"
#include "base/subprocess.h"
#include "comm/wire/messenger.h"
#include "commands.h"
#include "kolo/version.h"

namespace kolo::app {
namespace {

void line(bool there, std::string_view name, std::string_view remark) {
  fmt::print("    [{}] {:<10} {}\n", there ? 'X' : ' ', name, remark);
}

void plugin_line(std::string_view name, const std::string& plugin) {
  std::string why;
  if (comm::wire_plugin_available(plugin, &why))
    line(true, name, comm::load_wire_plugin(plugin).library);
  else
    line(false, name, why);
}

void program_line(std::string_view name, const std::string& program) {
  try {
    const auto path = find_program(program, environment("PATH").value_or("/usr/bin:/bin"));
    line(true, name, path.string());
  } catch (const Error&) {
    line(false, name, fmt::format("{} is not in PATH", program));
  }
}

int run_info(cli::NoOptions& /*options*/) {
  fmt::print("kolo {}\n\nTransports:\n", KOLO_VERSION);
  line(true, "shm", "shared memory inside a host");
  plugin_line("gloo", "gloo");
  plugin_line("mpi", "openmpi");
  plugin_line("mpi", "mpich");
  fmt::print("\nLaunchers:\n");
  line(true, "local", "this machine");
  program_line("ssh", "ssh");
  program_line("mpirun", "mpirun");
  program_line("srun", "srun");
  fmt::print("\nTools:\n");
  line(true, "hwloc", "for --bind-to");
  return 0;
}

}  // namespace

constinit const Command kInfo{
    .name = "info",
    .summary = "Print what this kolo was built with and what it finds on this machine",
    .examples = "kolo info\n",
    .options = declared<cli::NoOptions>,
    .run = run_declared<cli::NoOptions, run_info>,
};

}  // namespace kolo::app
