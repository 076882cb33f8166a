#include <filesystem>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "base/yaml.h"
#include "hps/problem/plugin.h"
#include "kolo/nas/problem.h"
#include "nas/problem/benchmark_problems.h"
#include "nas/problem/problem_file.h"

// Libraries of users say the same (kolo/nas/sdk.h); hps::Plugin compares both.
extern "C" {
__attribute__((used, visibility("default"))) extern const char kolo_built_with_libtorch[] =
    "kolo: built with libtorch " TORCH_VERSION;
}

namespace kolo::nas {
namespace {

constexpr std::string_view kPrefix = "benchmark.nas.";

LoadedNaProblem from_library(const hps::PluginName& name) {
  constexpr std::string_view kKind = "nas_problem";
  const hps::Plugin plugin(name.file);
  std::string symbol = name.symbol;
  if (symbol.empty()) {
    const auto names = plugin.names(kKind);
    symbol = names.size() == 1 ? std::string(names.front()) : "Problem";
  }
  using Make = void (*)(NaProblem&);
  const auto make = reinterpret_cast<Make>(plugin.at(kKind, symbol));
  LoadedNaProblem loaded{{}, std::filesystem::path(name.file).stem().string()};
  make(loaded.problem);
  return loaded;
}

LoadedNaProblem from_file(const std::filesystem::path& file) {
  const Json json =
      file.extension() == ".json" ? parse_json(read_file(file), file.string()) : load_yaml(file);
  return {read_problem_file(json, file), file.stem().string()};
}

}  // namespace

std::vector<NaProblemInfo> na_problems() {
  // Names with their prefix live as long as the program.
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& entry : kBenchmarkProblems.entries())
      all.push_back(std::string(kPrefix) + std::string(entry.name));
    return all;
  }();
  std::vector<NaProblemInfo> infos;
  for (std::size_t i = 0; i < names.size(); ++i)
    infos.push_back({names[i], kBenchmarkProblems.entries()[i].summary});
  return infos;
}

LoadedNaProblem load_na_problem(std::string_view what) {
  if (const auto* entry = kBenchmarkProblems.find(benchmark_name(what)))
    return {entry->make(), std::string(kPrefix) + std::string(entry->name)};
  if (const auto library = hps::parse_plugin_name(what)) return from_library(*library);
  const std::filesystem::path path(what);
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return from_file(path);
  for (const std::string_view ending : {".yaml", ".yml", ".json"})
    if (what.ends_with(ending))
      throw_error(ErrorCode::not_found, "problem '{}': there is no such file", what);
  std::vector<std::string_view> known;
  for (const NaProblemInfo& info : na_problems()) known.push_back(info.name);
  throw_unknown_name(kBenchmarkProblems.family(), what, known);
}

}  // namespace kolo::nas
