// kolo nas draw: a space of architectures, or one of them, as a picture.
#include <fmt/format.h>

#include "base/errors.h"
#include "base/files.h"
#include "hps/results/results_csv.h"
#include "kolo/nas/problem.h"
#include "nas_commands.h"

namespace kolo::app {

int run_nas_draw(NasDrawOptions& options) {
  const auto loaded = nas::load_na_problem(options.problem);
  const auto space = loaded.problem.architectures();
  std::optional<std::vector<std::int64_t>> chosen;
  if (!options.arch.empty())
    chosen =
        nas::NaProblem::arch_seq_of(search::Value{{"arch_seq", hps::value_of_field(options.arch)}});
  std::optional<std::span<const std::int64_t>> arch;
  if (chosen) arch = *chosen;
  const std::string picture = options.dot ? space->to_dot(arch) : space->to_svg(arch);
  if (options.output.empty()) {
    fmt::print("{}", picture);
  } else {
    write_file_atomically(options.output, picture);
    fmt::print("{}: {} architectures of {} choices\n", options.output, space->size(),
               space->choices().size());
  }
  return 0;
}

}  // namespace kolo::app
