#include "hps/problem/python_problem.h"

#include <filesystem>

#include "base/env.h"
#include "base/errors.h"
#include "base/subprocess.h"

namespace kolo::hps {
namespace {

namespace fs = std::filesystem;

constexpr auto kImportTime = std::chrono::minutes(5);  // frameworks take their time

std::string python() { return setting("PYTHON").value_or("python3"); }

std::string target(const PythonName& name, std::string_view usual) {
  return name.file + ":" + (name.name.empty() ? std::string(usual) : name.name);
}

/// What Python said last: the exception.
std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

std::optional<PythonName> parse_python_name(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const std::string_view file = text.substr(0, std::min(colon, text.size()));
  if (!file.ends_with(".py") || file.find(' ') != std::string_view::npos) return std::nullopt;
  PythonName name;
  name.file = fs::absolute(fs::path(file)).lexically_normal().string();
  if (colon != std::string_view::npos) name.name = text.substr(colon + 1);
  return name;
}

HpProblem load_python_problem(const PythonName& name) {
  std::error_code ignored;
  if (!fs::is_regular_file(name.file, ignored))
    throw_error(ErrorCode::not_found, "problem '{}': there is no such file", name.file);
  const CommandResult result = run_command(
      {python(), "-m", "kolo.hps.export", target(name, "Problem")}, Deadline::after(kImportTime));
  if (!result.ok())
    throw_error(ErrorCode::invalid_argument,
                "problem '{}': {} cannot read it: {} (KOLO_PYTHON names another interpreter)",
                target(name, "Problem"), python(), last_line(result.errors));
  return HpProblem::from_json(result.output, name.file);
}

std::vector<std::string> python_run_program(const PythonName& name) {
  return {python(), "-m", "kolo.hps.evaluate", target(name, "run")};
}

void check_python_run(const PythonName& name) {
  std::error_code ignored;
  if (!fs::is_regular_file(name.file, ignored))
    throw_error(ErrorCode::not_found, "run function '{}': there is no such file", name.file);
  const CommandResult result = run_command({python(), "-m", "kolo.hps.check", target(name, "run")},
                                           Deadline::after(kImportTime));
  if (!result.ok()) throw_error(ErrorCode::not_found, "run function: {}", last_line(result.errors));
}

}  // namespace kolo::hps
