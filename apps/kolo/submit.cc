// kolo submit: a search on a cluster by one command, in the place of balsam-submit and ray-submit.
//
// It makes a folder with a database of jobs (or takes the one of KOLO_DB), an application and a job
// that is the search, whose evaluations are jobs too, and submits a launcher for that workflow.
#include <algorithm>
#include <filesystem>

#include "base/errors.h"
#include "base/files.h"
#include "base/words.h"
#include "commands.h"
#include "jobs_common.h"
#include "search_command.h"

namespace kolo::app {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSubmitUsage =
    "kolo submit {hps,nas} SEARCH -w NAME -n NODES -t MINUTES --problem P [OPTIONS]";

constexpr Setting kSubmission[] = {
    {"workflow", "-w", "", "NAME", "", "of the jobs, and the folder that is made"},
    {"setup", "-as --activation-script", "", "FILE", "",
     "for bash to source before the search and each evaluation"},
};
/// Options of searches that this command decides itself, or that have no meaning in a queue.
constexpr std::string_view kOwn[] = {"json",  "quiet",  "help",      "evaluator",
                                     "hosts", "resume", "num-agents"};

std::vector<Setting> passed_settings(bool nas) {
  auto all = search_settings(nas ? ppo_settings() : std::span<const Setting>());
  std::erase_if(all, [](const Setting& row) {
    return std::find(std::begin(kOwn), std::end(kOwn), row.option) != std::end(kOwn);
  });
  return all;
}

/// What was ordered, understood.
struct Submission {
  bool nas = false;
  std::string search, workflow;
  jobs::Application application;
  jobs::Job job;
  jobs::LaunchRequest launch;
};

bool is_search(bool nas, std::string_view name) {
  const auto rows = nas ? nas_searches() : hps_searches();
  return std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
}

/// SEARCH -w NAME, or only NAME as DeepHyper's older form had it.
void take_names(const Options& options, Submission& submission) {
  const auto& words = options.words();
  if (words.empty() || (words[0] != "hps" && words[0] != "nas") || words.size() > 3)
    throw_error(ErrorCode::invalid_argument, "usage: {}", kSubmitUsage);
  submission.nas = words[0] == "nas";
  submission.search = submission.nas ? "regevo" : "ambs";
  submission.workflow = options.text("workflow").value_or("");
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (i == 1 &&
        (words.size() == 3 || !submission.workflow.empty() || is_search(submission.nas, words[i])))
      submission.search =
          find_search(submission.nas ? nas_searches() : hps_searches(), words[i]).name;
    else
      submission.workflow = words[i];
  }
  const auto& name = submission.workflow;
  if (name.empty() || name == "." || name == ".." || name.find_first_of("/\n") != std::string::npos)
    throw_error(ErrorCode::invalid_argument, "which workflow? Give -w NAME (without /)");
}

/// The words of the search, as one text that is split again without a shell.
std::string search_arguments(const Options& options, const Submission& submission) {
  std::string text = "--evaluator jobs";
  for (const auto& row : passed_settings(submission.nas))
    for (auto value : options.texts(row.option)) {
      if (row.option == "problem" || row.option == "run" || row.option == "warm-start")
        value = absolute_name(value);
      text += fmt::format(" --{}", row.option);
      if (!row.value.empty()) text += " " + shell_quoted(value);
    }
  return text;
}

Submission read_submission(const Options& options) {
  Submission submission;
  take_names(options, submission);
  if (!options.has("problem"))
    throw_error(ErrorCode::invalid_argument, "which problem? Give --problem");
  auto& launch = submission.launch;
  launch = allocation_of(options);
  launch.workflow = submission.workflow;

  auto& application = submission.application;
  application.name = fmt::format("{}-{}", submission.nas ? "nas" : "hps", submission.search);
  application.executable = fmt::format("{} {} {}", shell_quoted(own_program()),
                                       submission.nas ? "nas" : "hps", submission.search);
  if (const auto script = options.text("setup")) {
    if (!fs::exists(*script)) throw_error(ErrorCode::not_found, "there is no script {}", *script);
    application.envscript = fs::absolute(*script).string();
    application.name += "-" + submission.workflow;
  }
  auto& job = submission.job;
  job.name = submission.workflow;
  job.workflow = submission.workflow;
  job.application = application.name;
  job.args = search_arguments(options, submission);
  job.wall_time_minutes = launch.batch.minutes;
  // A search that is cut off by the end of an allocation goes on in the next one.
  job.args += " --resume";
  const auto per_node = options.integer("num-evals-per-node", 1).value_or(1);
  job.node_packing_count = static_cast<int>(per_node);
  if (const auto agents = options.integer("num-agents", 1))
    job.num_nodes = static_cast<int>(*agents);
  if (job.num_nodes > launch.batch.nodes)
    throw_error(ErrorCode::invalid_argument, "{} agents need as many nodes; the allocation has {}",
                job.num_nodes, launch.batch.nodes);
  return submission;
}

/// The script as it will be, also before there is a database.
std::string script_for(const fs::path& folder, const launch::BatchSystem& system,
                       const jobs::LaunchRequest& request) {
  const auto written = [&](jobs::JobDatabase database) {
    return jobs::launch_script(database, system, request,
                               (database.folder() / "log/qlaunch.log").string());
  };
  if (fs::exists(folder)) return written(jobs::JobDatabase::open(folder));
  const TempDir elsewhere;
  const fs::path stand_in = elsewhere.path() / "database";
  std::string script = written(jobs::JobDatabase::init(stand_in));
  const std::string right = fs::absolute(folder).lexically_normal().string();
  for (auto at = script.find(stand_in.string()); at != std::string::npos;
       at = script.find(stand_in.string(), at + right.size()))
    script.replace(at, stand_in.string().size(), right);
  return script;
}

}  // namespace

int run_command_submit(const Arguments& arguments) {
  const bool nas = !arguments.empty() && arguments[0] == "nas";
  std::vector<Setting> table(std::begin(kSubmission), std::end(kSubmission));
  for (const auto& row : allocation_settings()) table.push_back(row);
  for (const auto& row : passed_settings(nas)) table.push_back(row);
  if (nas) table.push_back(ppo_settings()[0]);
  table.push_back({"help", "-h", "", "", "", "this text"});
  const Options options(table, arguments);
  if (options.has("help")) {
    print_options_help(
        kSubmitUsage,
        "Puts a search into the queue of the batch system: makes the folder NAME with "
        "a database\nof jobs (or uses that of KOLO_DB), the search as a job in it, and "
        "submits a launcher.",
        table);
    return 0;
  }
  Submission submission = read_submission(options);
  const auto system = launch::make_batch_system(options.text("scheduler").value_or(""));
  const char* given = std::getenv("KOLO_DB");
  const fs::path folder =
      given != nullptr && *given != '\0' ? fs::path(given) : fs::path(submission.workflow);
  const bool there = fs::exists(folder);
  if (options.has("dry-run")) {
    fmt::print("# {} {}\n# application {}: {}\n# job {}: {}\n", there ? "database" : "new database",
               folder.string(), submission.application.name, submission.application.executable,
               submission.job.name, submission.job.args);
    fmt::print("{}", script_for(folder, *system, submission.launch));
    return 0;
  }
  // A launch that is refused leaves no job behind.
  (void)script_for(folder, *system, submission.launch);
  auto database = there ? jobs::JobDatabase::open(folder) : jobs::JobDatabase::init(folder);
  database.set_application(submission.application);
  const auto job = database.create(submission.job);
  const auto launch = jobs::submit_launch(database, *system, submission.launch);
  fmt::print("job {} ({} {}) in {}, launch {} is {} job {}\nits files will be in {}\n",
             number_of(job), submission.nas ? "nas" : "hps", submission.search,
             database.folder().string(), launch.id, launch.scheduler, launch.scheduler_id,
             database.folder_of(database.job(job)).string());
  return 0;
}

}  // namespace kolo::app
