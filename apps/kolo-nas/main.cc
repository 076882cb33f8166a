// kolo-nas: what `kolo nas` runs.
#include <fmt/format.h>

#include "base/text_table.h"
#include "kolo/nas/problem.h"
#include "kolo/nas/run.h"
#include "nas_commands.h"

namespace kolo::app {
namespace {

template <class Rows>
void print_rows(std::string_view heading, const Rows& rows) {
  std::vector<std::vector<std::string>> cells;
  for (const auto& row : rows) cells.push_back({std::string(row.name), std::string(row.summary)});
  fmt::print("{}:\n{}", heading, text_table(cells, {.indent = 2}));
}

int run_nas_list(cli::NoOptions& /*options*/) {
  print_rows("Problems", nas::na_problems());
  print_rows("\nSpaces", nas::spaces());
  print_rows("\nRun functions", nas::na_run_functions());
  return 0;
}

template <class Options, auto Run>
constexpr cli::Command running(cli::Command about) {
  about.run = cli::run_declared<Options, Run>;
  return about;
}
constexpr cli::Command kDraw = running<NasDrawOptions, run_nas_draw>(kNasDrawAbout);
constexpr cli::Command kPostTrain =
    running<NasPostTrainOptions, run_nas_post_train>(kNasPostTrainAbout);
constexpr cli::Command kList = running<cli::NoOptions, run_nas_list>(kNasListAbout);
constexpr cli::Command kEvaluate{
    .name = "evaluate",
    .summary = "Evaluate one architecture of a search",
    .options = cli::declared<EvaluateOptions>,
    .run = cli::run_declared<EvaluateOptions, run_nas_evaluate>,
    .is_hidden = true,
};
constexpr cli::Command kCheck{
    .name = "check",
    .summary = "Check the options of a search, for `kolo submit nas`",
    .options = cli::declared<NasOptions>,
    .run = cli::run_declared<NasOptions, check_nas_search>,
    .is_hidden = true,
};
constexpr const cli::Command* kParts[] = {&kDraw, &kPostTrain, &kList, &kEvaluate, &kCheck};

constexpr cli::Command with_parts() {
  cli::Command root = running<NasOptions, run_nas_search>(kNasSearchAbout);
  root.name = "kolo nas";
  root.subcommands = kParts;
  return root;
}
constexpr cli::Command kRoot = with_parts();

}  // namespace
}  // namespace kolo::app

int main(int argc, char** argv) {
  return kolo::cli::run_program(kolo::app::kRoot, {argv + 1, argv + argc});
}
