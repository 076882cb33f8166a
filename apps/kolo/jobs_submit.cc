// kolo submit-launch: a launcher in the queue of a batch system.
#include <fmt/format.h>

#include "allocation_options.h"
#include "commands.h"
#include "jobs_database.h"

namespace kolo::app {
namespace {

struct SubmitLaunchOptions {
  AllocationOptions allocation;
  void declare(OptionSet& set);
};
constexpr OptionText kLaunchWorkflow{"wf-filter", "NAME",
                                     "Run only jobs of this workflow, or of a pattern: 'TEST*'."};
void SubmitLaunchOptions::declare(OptionSet& set) {
  allocation.declare(set);
  set.add("Jobs", kLaunchWorkflow, &allocation.launch.workflow);
}

int run_submit_launch(SubmitLaunchOptions& options) {
  const jobs::LaunchRequest request = options.allocation.request();
  const auto system = launch::make_batch_system(options.allocation.scheduler);
  auto database = open_jobs();
  if (options.allocation.dry_run) {
    fmt::print("{}", jobs::launch_script(database, *system, request, "qlaunch"));
    return 0;
  }
  const auto launch = jobs::submit_launch(database, *system, request);
  fmt::print("submitted launch {} as {} job {}\n", launch.id, launch.scheduler,
             launch.scheduler_id);
  return 0;
}

}  // namespace

constinit const Command kSubmitLaunch{
    .name = "submit-launch",
    .summary = "Submit a launcher to the batch system; it runs jobs on the nodes that it gets",
    .examples = "kolo submit-launch -n 128 -t 180 -q default -A myproject --wf-filter TEST\n",
    .notes =
        "A file job-template.sh in the folder of the database replaces the template of the "
        "batch system.",
    .options = declared<SubmitLaunchOptions>,
    .run = run_declared<SubmitLaunchOptions, run_submit_launch>,
};

}  // namespace kolo::app
