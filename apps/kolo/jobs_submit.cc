// kolo submit-launch: a launcher in the queue of a batch system.
#include "base/errors.h"
#include "commands.h"
#include "jobs/nodes.h"
#include "jobs/queued_launches.h"
#include "jobs/words.h"
#include "jobs_common.h"

namespace kolo::app {

int run_command_submit_launch(const Arguments& arguments) {
  constexpr Setting kTable[] = {
      {"nodes", "-n", "", "N", "1", "nodes of the allocation"},
      {"time-minutes", "-t --wall-minutes", "", "N", "60", "its time"},
      {"queue", "-q", "", "NAME", "the system's", "queue or partition"},
      {"project", "-A", "", "NAME", "", "project or account"},
      {"job-mode", "-j", "", "MODE", "mixed", "mixed, serial or mpi; see kolo launcher"},
      {"wf-filter", "", "", "PART", "", "only jobs whose workflow has this part"},
      {"sched-flags", "", "", "WORDS", "", "a further directive for the batch system", true},
      {"launcher-flags", "", "", "WORDS", "", "further options for kolo launcher"},
      {"scheduler", "", "", "NAME", "the one found here", "see kolo list batch-systems"},
      {"dry-run", "", "", "", "", "print the script, submit nothing"},
      {"help", "-h", "", "", "", "this text"}};
  const Options options(kTable, arguments);
  if (options.has("help")) {
    print_options_help(
        "kolo submit-launch -n NODES -t MINUTES [-q QUEUE] [-A PROJECT] [OPTIONS]",
        "Submits a script to the batch system that runs a launcher on the nodes it gets.\n"
        "job-template.sh in the database's folder replaces the system's template.",
        kTable);
    return 0;
  }
  options.expect_words(0, 0, "kolo submit-launch -n NODES -t MINUTES [OPTIONS]");
  jobs::LaunchRequest request;
  request.batch.nodes = static_cast<int>(options.integer("nodes", 1).value_or(1));
  request.batch.minutes = static_cast<int>(options.integer("time-minutes", 1).value_or(60));
  request.batch.queue = options.text("queue").value_or("");
  request.batch.project = options.text("project").value_or("");
  request.batch.flags = options.texts("sched-flags");
  request.job_mode = options.text("job-mode").value_or("mixed");
  (void)jobs::parse_job_mode(request.job_mode);
  request.workflow = options.text("wf-filter").value_or("");
  request.kolo = own_program();
  for (const auto& words : options.texts("launcher-flags"))
    for (auto& word : jobs::split_words(words, "--launcher-flags"))
      request.launcher_options.push_back(std::move(word));
  for (const auto* text : {&request.batch.queue, &request.batch.project})
    if (text->find('\n') != std::string::npos)
      throw_error(ErrorCode::invalid_argument, "a queue or project of several lines");
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
