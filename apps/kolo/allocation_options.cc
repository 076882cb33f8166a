#include "allocation_options.h"

#include "base/errors.h"
#include "base/words.h"
#include "jobs_database.h"
#include "names.h"

namespace kolo::app {
namespace {

using cli::Option;
using namespace cli::rows;
using launch::BatchRequest;

constexpr Option<BatchRequest> kBatchRows[] = {
    {&BatchRequest::nodes, "nodes", "N", "Ask for N nodes.", aliases("-n"), least(1)},
    {&BatchRequest::minutes, "time-minutes", "N", "Ask for N minutes.",
     aliases("-t --wall-minutes"), least(1)},
    {&BatchRequest::queue, "queue", "NAME", "Submit to this queue or partition.", aliases("-q"),
     fallback("the batch system's own")},
    {&BatchRequest::project, "project", "NAME", "Charge this project or account.", aliases("-A")},
    {&BatchRequest::flags, "sched-flags", "WORDS",
     "Add a directive for the batch system to the script, as in --sched-flags '-m be'."},
};
constexpr Option<jobs::LaunchRequest> kModeRow[] = {
    {&jobs::LaunchRequest::job_mode, "job-mode", "mixed|serial|mpi",
     "Run jobs in this mode; `kolo launcher --help` describes them.", aliases("-j"),
     choices("mixed|serial|mpi")},
};
constexpr Option<AllocationOptions> kLaunchRows[] = {
    {&AllocationOptions::gpus_per_node, "gpus-per-node", "N",
     "Let jobs use N GPUs of each node. If the batch system must be asked for them, add its "
     "directive by --sched-flags.",
     least(0)},
    {&AllocationOptions::launcher_flags, "launcher-flags", "WORDS",
     "Pass these options on to `kolo launcher`."},
    {&AllocationOptions::scheduler, "scheduler", "NAME",
     "Use this batch system; `kolo list batch-systems` shows the names.",
     fallback("the one found here"), names(batch_system_names)},
    {&AllocationOptions::dry_run, "dry-run", "", "Print the script and submit nothing."},
};

}  // namespace

void AllocationOptions::declare(cli::OptionSet& set) {
  set.add("Allocation", kBatchRows, launch.batch);
  set.add("Allocation", kModeRow, launch);
  set.add("Allocation", kLaunchRows, *this);
}

jobs::LaunchRequest AllocationOptions::request() const {
  jobs::LaunchRequest request = launch;
  request.kolo = own_program();
  if (gpus_per_node) request.launcher_options = {"--gpus-per-node", std::to_string(*gpus_per_node)};
  for (const auto& words : launcher_flags)
    for (auto& word : split_words(words, "--launcher-flags"))
      request.launcher_options.push_back(std::move(word));
  for (const auto* text : {&request.batch.queue, &request.batch.project})
    if (text->find('\n') != std::string::npos)
      throw_error(ErrorCode::invalid_argument, "a queue or a project must be on one line");
  return request;
}

}  // namespace kolo::app
