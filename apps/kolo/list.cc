// kolo list FAMILY
#include <fmt/ranges.h>

#include <functional>

#include "base/errors.h"
#include "base/registry.h"
#include "comm/transports.h"
#include "commands.h"
#include "hps/problem/function_problems.h"
#include "hps/search/evaluators.h"
#include "kolo/search.h"
#include "launch/batch/batch_system.h"
#include "launch/runners.h"
#include "store/database.h"
#include "tune/output/trial_log.h"

namespace kolo::app {
namespace {

struct Family {
  std::string_view name;
  std::string_view summary;
  void (*print)();
};

void print_transports() {
  for (const auto& transport : comm::transports())
    fmt::print("{:<10} {}\n", transport.name, transport.summary);
}

void print_schedulers() {
  for (const auto& scheduler : search::schedulers())
    fmt::print("{:<22} {}\n", scheduler.name, scheduler.summary);
}

void print_samplers() {
  for (const auto& sampler : search::samplers())
    fmt::print("{:<22} {}\n", sampler.name, sampler.summary);
}

void print_runners() {
  for (const auto& runner : launch::runners().entries())
    fmt::print("{:<10} {}\n", runner.name, runner.summary);
}

void print_batch_systems() {
  for (const auto& system : launch::batch_systems().entries())
    fmt::print("{:<12} {}\n", system.name, system.summary);
}

void print_stores() {
  for (const auto& store : store::stores()) fmt::print("{:<22} {}\n", store.name, store.summary);
}

void print_loggers() {
  for (const auto& logger : tune::loggers()) fmt::print("{:<22} {}\n", logger.name, logger.summary);
}

void print_evaluators() {
  for (const auto& evaluator : hps::evaluators())
    fmt::print("{:<12} {}\n", evaluator.name, evaluator.summary);
}

void print_problems() {
  for (const auto& problem : hps::function_problems())
    fmt::print("{:<30} {}\n", hps::full_name(problem), problem.summary);
}

constexpr Family kFamilies[] = {
    {"transports", "ways of moving bytes between ranks", print_transports},
    {"samplers", "algorithms that say what to try next", print_samplers},
    {"schedulers", "rules that stop, pause and clone trials", print_schedulers},
    {"evaluators", "ways of running the evaluations of a search", print_evaluators},
    {"problems", "built-in problems of kolo hps", print_problems},
    {"runners", "commands that start jobs of several ranks", print_runners},
    {"batch-systems", "systems that kolo submit-launch knows", print_batch_systems},
    {"stores", "databases that keep studies", print_stores},
    {"loggers", "forms in which results are written", print_loggers},
};

}  // namespace

int run_command_list(const Arguments& arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    fmt::print("Usage: kolo list FAMILY\n\nFamilies:\n");
    for (const auto& family : kFamilies) fmt::print("  {:<14} {}\n", family.name, family.summary);
    return arguments.empty() ? 2 : 0;
  }
  std::vector<std::string_view> known;
  for (const auto& family : kFamilies) {
    if (family.name == arguments[0]) {
      family.print();
      return 0;
    }
    known.push_back(family.name);
  }
  throw_unknown_name("family", arguments[0], known, ErrorCode::invalid_argument);
}

}  // namespace kolo::app
