// kolo new-problem: a folder with a problem of one's own, which builds and runs at once.
#include <cctype>
#include <filesystem>

#include "base/errors.h"
#include "base/files.h"
#include "base/registry.h"
#include "commands.h"
#include "options.h"
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
                "'{}' cannot be the name of a problem: letters, digits and _ are needed", name);
}

std::string filled(std::string text, std::string_view mark, const std::string& value) {
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size()))
    text.replace(at, mark.size(), value);
  return text;
}

}  // namespace

int run_command_new_problem(const Arguments& arguments) {
  constexpr Setting kTable[] = {{"help", "-h", "", "", "", "this text"}};
  constexpr std::string_view kUsage = "kolo new-problem {hps,nas} NAME";
  const Options options(kTable, arguments);
  if (options.has("help")) {
    fmt::print(
        "Makes the folder NAME with a small problem that builds and runs at once, to begin "
        "from.\n\n"
        "Usage: {}\n",
        kUsage);
    return 0;
  }
  options.expect_words(2, 2, kUsage);
  const std::string kind = options.words()[0], name = options.words()[1];
  if (kind != "hps" && kind != "nas")
    throw_error(ErrorCode::invalid_argument, "'{}' is no kind of problem; known: hps, nas", kind);
  check_name(name);
  if (fs::exists(name))
    throw_error(ErrorCode::already_exists, "there is a '{}' here already", name);

  std::string include;
  for (const auto& directory : include_directories())
    include += (include.empty() ? "" : ";") + directory.string();
  fs::create_directories(name);
  const bool nas = kind == "nas";
  const auto fill = [&](std::string_view text) {
    return filled(filled(filled(std::string(text), "@NAME@", name), "@INCLUDE@", include), "@KIND@",
                  kind);
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

}  // namespace kolo::app
