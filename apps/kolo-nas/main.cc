// kolo-nas: what `kolo nas` runs.
#include <cstdio>

#include "base/errors.h"
#include "kolo/nas/problem.h"
#include "kolo/nas/run.h"
#include "nas_commands.h"

namespace kolo::app {
namespace {

int list_problems(const Arguments& /*arguments*/) {
  fmt::print("Problems:\n");
  for (const auto& problem : nas::na_problems())
    fmt::print("  {:<38} {}\n", problem.name, problem.summary);
  fmt::print("\nSpaces:\n");
  for (const auto& space : nas::spaces()) fmt::print("  {:<38} {}\n", space.name, space.summary);
  fmt::print("\nRun functions:\n");
  for (const auto& run : nas::na_run_functions())
    fmt::print("  {:<38} {}\n", run.name, run.summary);
  return 0;
}

struct Command {
  std::string_view name;
  int (*run)(const Arguments&);
};
constexpr Command kCommands[] = {{"evaluate", run_nas_evaluate},
                                 {"draw", run_nas_draw},
                                 {"post-train", run_nas_post_train},
                                 {"list", list_problems}};

}  // namespace
}  // namespace kolo::app

int main(int argc, char** argv) {
  using namespace kolo;
  app::Arguments arguments(argv + 1, argv + argc);
  try {
    for (const auto& command : app::kCommands)
      if (!arguments.empty() && arguments[0] == command.name) {
        arguments.erase(arguments.begin());
        return command.run(arguments);
      }
    return app::run_nas_search(arguments);
  } catch (const Error& error) {
    fmt::print(stderr, "kolo nas: {}\n", error.message());
    return error.code() == ErrorCode::invalid_argument ? 2 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "kolo nas: {}\n", error.what());
    return 1;
  }
}
