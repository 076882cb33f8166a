// kolo info = kolo run --check-build
#include <gnu/libc-version.h>

#include "base/env.h"
#include "base/errors.h"
#include "base/subprocess.h"
#include "comm/wire/messenger.h"
#include "commands.h"
#include "kolo/version.h"
#include "search_command.h"
#include "store/library_versions.h"
#include "store/study_schema.h"

namespace kolo::app {
namespace {

/// Prints what is there, and remembers which packages would bring the rest.
class Inventory {
 public:
  static void heading(std::string_view name) { fmt::print("\n{}:\n", name); }
  static void there(std::string_view name, std::string_view remark) {
    fmt::print("    [X] {:<11} {}\n", name, remark);
  }
  /// `package` is one of Debian's own; "" = `why` says what to do.
  void missing(std::string_view name, std::string_view why, std::string_view package) {
    fmt::print("    [ ] {:<11} {}\n", name, why);
    if (!package.empty()) packages_ += fmt::format(" {}", package);
  }

  void plugin(std::string_view name, const std::string& plugin, std::string_view package) {
    std::string why;
    if (comm::wire_plugin_available(plugin, &why))
      there(name, comm::load_wire_plugin(plugin).library);
    else
      missing(name, why, package);
  }
  void program(std::string_view name, std::string_view package) {
    try {
      there(
          name,
          find_program(std::string(name), environment("PATH").value_or("/usr/bin:/bin")).string());
    } catch (const Error&) {
      missing(name, fmt::format("{} is not in PATH", name), package);
    }
  }
  void libpq() {
    try {
      there("PostgreSQL", fmt::format("libpq {}", store::libpq_version()));
    } catch (const Error& error) {
      missing("PostgreSQL", error.message(), "libpq5");
    }
  }
  void training() {
    try {
      const std::string program = program_beside("kolo-nas");
#ifdef KOLO_TORCH_VERSION
      there("libtorch", KOLO_TORCH_VERSION);
#endif
      there("kolo nas", program);
    } catch (const Error&) {
      missing("libtorch", "the package kolo-torch has it, or a build with -DKOLO_WITH_TORCH=ON",
              "");
      missing("kolo nas", "needs libtorch", "");
    }
  }
  void advice() const {
    if (!packages_.empty())
      fmt::print("\nWhat is missing is optional. On Debian, this adds it:\n    apt-get install{}\n",
                 packages_);
  }

 private:
  std::string packages_;
};

int run_info(cli::NoOptions& /*options*/) {
  Inventory inventory;
  fmt::print("kolo {}, built by {} {}, on glibc {}\n", KOLO_VERSION,
#ifdef __clang__
             "Clang", __clang_version__,
#else
             "GCC", __VERSION__,
#endif
             ::gnu_get_libc_version());
  Inventory::heading("Transports");
  Inventory::there("shm", "shared memory inside a host");
  Inventory::there("tcp", "sockets between hosts");
  inventory.plugin("mpi", "openmpi", "libopenmpi3");
  inventory.plugin("mpi", "mpich", "libmpich12");
  Inventory::heading("Launchers");
  Inventory::there("local", "this machine");
  inventory.program("ssh", "openssh-client");
  inventory.program("mpirun", "openmpi-bin");
  inventory.program("srun", "slurm-client");
  Inventory::heading("Databases");
  Inventory::there("SQLite", store::sqlite_version());
  inventory.libpq();
  Inventory::heading("Training and architecture search");
  inventory.training();
  Inventory::heading("Tools");
  Inventory::there("hwloc", "for --bind-to");
  Inventory::heading("Formats");
  Inventory::there("studies", fmt::format("version {} of the tables, and older ones",
                                          store::study_migrations().back().version));
  inventory.advice();
  return 0;
}

}  // namespace

constinit const Command kInfo{
    .name = "info",
    .summary =
        "Print versions, what this kolo finds on this machine, and how to add what is missing",
    .examples = "kolo info\n",
    .options = declared<cli::NoOptions>,
    .run = run_declared<cli::NoOptions, run_info>,
    .heading = "Other commands",
};

}  // namespace kolo::app
