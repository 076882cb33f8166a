// kolo new-problem: a folder with a problem of one's own, which builds and runs at once.
#include <cctype>
#include <filesystem>

#include "base/errors.h"
#include "base/files.h"
#include "commands.h"
#include "problem_templates.h"

namespace kolo::app {
namespace fs = std::filesystem;
namespace {

/// Where the headers of this kolo are: of its installation, or of the tree it was built in.
std::vector<fs::path> include_directories() {
  const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path beside = bin.parent_path() / "include";
  if (fs::exists(beside / "kolo/hps.h")) return {beside};
  for (fs::path up = bin; up.has_relative_path(); up = up.parent_path())
    if (fs::exists(up / "include/kolo/hps.h")) return {up / "include", beside};
  throw_error(ErrorCode::not_found,
              "the headers of kolo are not beside {}: install kolo (cmake --install)",
              bin.string());
}

void check_name(const std::string& name) {
  const bool fine = !name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
                    std::all_of(name.begin(), name.end(),
                                [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  if (!fine)
    throw_error(ErrorCode::invalid_argument,
                "'{}' cannot be the name of a problem: use letters, digits and _", name);
}

/// Lets find_package(Torch) find the libtorch that this kolo was built with. By its folder alone it
/// would take headers from there, and libraries of the system.
std::string torch_of_this_kolo() {
#ifdef KOLO_TORCH_PREFIX
  return "list(PREPEND CMAKE_PREFIX_PATH \"" KOLO_TORCH_PREFIX "\")\n";
#else
  return "";
#endif
}

std::string filled(std::string text, std::string_view mark, const std::string& value) {
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size()))
    text.replace(at, mark.size(), value);
  return text;
}

struct NewProblemOptions {
  std::string kind, name;
  void declare(OptionSet& set);
};
constexpr Option<NewProblemOptions> kNewProblemRows[] = {
    {&NewProblemOptions::kind, "KIND", "",
     "What is searched: hyperparameters (hps) or architectures (nas).", choices("hps|nas")},
    {&NewProblemOptions::name, "NAME", "", "The name of the problem and of the new folder."},
};
void NewProblemOptions::declare(OptionSet& set) { set.add("Arguments", kNewProblemRows, *this); }

int run_new_problem(NewProblemOptions& options) {
  const auto& [kind, name] = options;
  check_name(name);
  if (fs::exists(name)) throw_error(ErrorCode::already_exists, "'{}' exists already", name);

  std::string include;
  for (const auto& directory : include_directories())
    include += (include.empty() ? "" : ";") + directory.string();
  fs::create_directories(name);
  const bool nas = kind == "nas";
  const auto fill = [&](std::string_view text) {
    std::string result(text);
    for (const auto& [mark, value] : {std::pair<std::string_view, std::string>{"@NAME@", name},
                                      {"@KIND@", kind},
                                      {"@INCLUDE@", include},
                                      {"@TORCH@", torch_of_this_kolo()}})
      result = filled(std::move(result), mark, value);
    return result;
  };
  const fs::path folder = name;
  write_file_atomically(folder / "problem.cc", fill(nas ? kNasProblem : kHpsProblem));
  write_file_atomically(folder / "CMakeLists.txt", fill(nas ? kNasBuild : kHpsBuild));
  write_file_atomically(folder / "README.md", fill(kProblemReadme));
  fmt::print(
      "made {0}/problem.cc, {0}/CMakeLists.txt and {0}/README.md. Next:\n"
      "  cmake -S {0} -B {0}/build && cmake --build {0}/build\n"
      "  kolo {1} {2} --problem {0}/build/lib{0}.so:Problem{3} --max-evals 20 --log-dir {0}/log\n",
      name, kind, nas ? "regevo" : "ambs",
      nas ? "" : fmt::format(" --run {0}/build/lib{0}.so:run", name));
  return 0;
}

}  // namespace

constinit const Command kNewProblem{
    .name = "new-problem",
    .summary = "Make a folder with a small problem of your own that builds and runs at once",
    .examples = "kolo new-problem hps mine\n",
    .options = declared<NewProblemOptions>,
    .run = run_declared<NewProblemOptions, run_new_problem>,
};

}  // namespace kolo::app
