// kolo list FAMILY
#include <fmt/format.h>

#include "base/registry.h"
#include "base/text_table.h"
#include "commands.h"
#include "names.h"

namespace kolo::app {
namespace {

struct Family {
  std::string_view name;
  std::string_view summary;
  cli::Names names;
};

constexpr Family kFamilies[] = {
    {"transports", "ways to move bytes between ranks", transport_names},
    {"samplers", "algorithms that propose what to try next", sampler_names},
    {"schedulers", "rules that stop, pause and clone trials", scheduler_names},
    {"executors", "ways to run trials, which are the evaluations of a search", executor_names},
    {"problems", "built-in problems of `kolo hps`", problem_names},
    {"runners", "commands that start jobs of several ranks", runner_names},
    {"batch-systems", "batch systems that `kolo submit-launch` can use", batch_system_names},
    {"stores", "databases that can keep studies", store_names},
    {"loggers", "formats in which trials write their results", logger_names},
};

std::vector<NamedText> family_names(const OptionSet&) {
  std::vector<NamedText> names;
  for (const auto& family : kFamilies)
    names.push_back({std::string(family.name), std::string(family.summary)});
  return names;
}

struct ListOptions {
  std::string family;
  void declare(OptionSet& set);
};
constexpr Option<ListOptions> kListRows[] = {
    {&ListOptions::family, "FAMILY", "", "What to list:", only(family_names)},
};
void ListOptions::declare(OptionSet& set) { set.add("Arguments", kListRows, *this); }

int run_list(ListOptions& options, OptionSet& given) {
  for (const auto& family : kFamilies) {
    if (family.name != options.family) continue;
    std::vector<std::vector<std::string>> rows;
    for (const auto& entry : family.names(given)) rows.push_back({entry.name, entry.summary});
    fmt::print("{}", text_table(rows));
  }
  return 0;
}

}  // namespace

constinit const Command kList{
    .name = "list",
    .summary = "List the names that options accept, for example of transports or samplers",
    .examples = "kolo list samplers\n",
    .options = declared<ListOptions>,
    .run = run_declared<ListOptions, run_list>,
};

}  // namespace kolo::app
