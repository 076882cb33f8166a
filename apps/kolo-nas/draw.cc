// kolo nas draw: a space of architectures, or one of them, as a picture.
#include <fstream>

#include "base/errors.h"
#include "base/files.h"
#include "hps/results/results_csv.h"
#include "kolo/nas/problem.h"
#include "nas_commands.h"

namespace kolo::app {

int run_nas_draw(const Arguments& arguments) {
  constexpr Setting kTable[] = {
      {"problem", "-p", "", "NAME|FILE|LIB.so:NAME", "", "whose space is drawn"},
      {"arch", "", "", "[1, 0, …]", "the whole space", "one architecture of it"},
      {"dot", "", "", "", "", "Graphviz' language instead of SVG"},
      {"output", "-o", "", "FILE", "standard output", ""},
      {"help", "-h", "", "", "", "this text"}};
  const Options options(kTable, arguments);
  if (options.has("help")) {
    fmt::print(
        "Draws a space of architectures, or one of them.\n\nUsage: kolo nas draw --problem P "
        "[OPTIONS]\n\nOptions:\n{}",
        help_text(kTable));
    return 0;
  }
  options.expect_words(0, 0, "kolo nas draw --problem P [OPTIONS]");
  const auto problem = options.text("problem");
  if (!problem) throw_error(ErrorCode::invalid_argument, "which problem? Give --problem");
  const auto loaded = nas::load_na_problem(*problem);
  const auto space = loaded.problem.architectures();
  std::optional<std::vector<std::int64_t>> chosen;
  if (const auto text = options.text("arch"))
    chosen = nas::NaProblem::arch_seq_of(search::Value{{"arch_seq", hps::value_of_field(*text)}});
  std::optional<std::span<const std::int64_t>> arch;
  if (chosen) arch = *chosen;
  const std::string picture = options.has("dot") ? space->to_dot(arch) : space->to_svg(arch);
  if (const auto file = options.text("output")) {
    write_file_atomically(*file, picture);
    fmt::print("{}: {} architectures of {} choices\n", *file, space->size(),
               space->choices().size());
  } else {
    fmt::print("{}", picture);
  }
  return 0;
}

}  // namespace kolo::app
