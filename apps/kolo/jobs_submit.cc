// kolo submit-launch: a launcher in the queue of a batch system.
#include <fmt/format.h>

#include "commands.h"
#include "jobs_common.h"

namespace kolo::app {

int run_command_submit_launch(const Arguments& arguments) {
  const auto common = allocation_settings();
  std::vector<Setting> table(common.begin(), common.end());
  table.push_back({"wf-filter", "", "", "PART", "", "only jobs whose workflow has this part"});
  table.push_back({"help", "-h", "", "", "", "this text"});
  const Options options(table, arguments);
  if (options.has("help")) {
    print_options_help(
        "kolo submit-launch -n NODES -t MINUTES [-q QUEUE] [-A PROJECT] [OPTIONS]",
        "Submits a script to the batch system that runs a launcher on the nodes it gets.\n"
        "job-template.sh in the database's folder replaces the system's template.",
        table);
    return 0;
  }
  options.expect_words(0, 0, "kolo submit-launch -n NODES -t MINUTES [OPTIONS]");
  jobs::LaunchRequest request = allocation_of(options);
  request.workflow = options.text("wf-filter").value_or("");
  const auto system = launch::make_batch_system(options.text("scheduler").value_or(""));
  auto database = open_jobs();
  if (options.has("dry-run")) {
    fmt::print("{}", jobs::launch_script(database, *system, request,
                                         (database.folder() / "log/qlaunch.log").string()));
    return 0;
  }
  const auto launch = jobs::submit_launch(database, *system, request);
  fmt::print("submitted launch {} as {} job {}\n", launch.id, launch.scheduler,
             launch.scheduler_id);
  return 0;
}

}  // namespace kolo::app
