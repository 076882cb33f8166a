// kolo nas draw: a space of architectures, or one of them, as a picture.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/errors.h"
#include "base/files.h"
#include "base/plural.h"
#include "hps/results/results_csv.h"
#include "kolo/nas/problem.h"
#include "nas_commands.h"

namespace kolo::app {
namespace {

/// [1, 0, 3], 1,0,3 or 1 0 3.
search::Value list_in(std::string text) {
  const auto first = text.find_first_not_of(' ');
  if (first != std::string::npos && text[first] == '[') return hps::value_of_field(text);
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream words(text);
  search::Value::List list;
  for (std::string word; words >> word;) list.push_back(hps::value_of_field(word));
  return search::Value(std::move(list));
}

std::vector<std::int64_t> architecture_in(const std::string& text, const nas::KSearchSpace& space) {
  std::vector<std::int64_t> choices;
  try {
    const search::Value list = list_in(text);
    for (const search::Value& each : list.as_list()) choices.push_back(each.as_integer());
  } catch (const Error&) {
    throw_error(ErrorCode::invalid_argument,
                "--arch: '{}' is no list of choices; write whole numbers, as in 1,0,3", text);
  }
  try {
    space.check_architecture(choices);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--arch '{}': {}", text, error.message()));
  }
  return choices;
}

}  // namespace

int run_nas_draw(NasDrawOptions& options) {
  const auto loaded = nas::load_na_problem(options.problem);
  const auto space = loaded.problem.architectures();
  std::optional<std::vector<std::int64_t>> chosen;
  if (!options.arch.empty()) chosen = architecture_in(options.arch, *space);
  const auto ending = std::filesystem::path(options.output).extension();
  if (!options.output.empty() && ending != ".svg" && ending != ".dot" && ending != ".gv")
    throw_error(ErrorCode::invalid_argument,
                "{}: pictures are SVG (.svg) or Graphviz code (.dot, .gv); `dot -Tpng` turns the "
                "latter into other formats",
                options.output);
  if (ending == ".dot" || ending == ".gv") options.dot = true;
  std::optional<std::span<const std::int64_t>> arch;
  if (chosen) arch = *chosen;
  const std::string picture = options.dot ? space->to_dot(arch) : space->to_svg(arch);
  if (options.output.empty()) {
    fmt::print("{}", picture);
  } else {
    write_output_file(options.output, picture);
    fmt::print("{}: {} architectures, {}\n", options.output, space->size(),
               counted(static_cast<std::int64_t>(space->choices().size()), "choice"));
  }
  return 0;
}

}  // namespace kolo::app
