// kolo submit: a search on a cluster by one command, in the place of balsam-submit and ray-submit.
//
// It makes a folder with a database of jobs (or takes the one of KOLO_DB), an application and a job
// that is the search, whose evaluations are jobs too, and submits a launcher for that workflow.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "allocation_options.h"
#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/registry.h"
#include "base/subprocess.h"
#include "base/words.h"
#include "commands.h"
#include "hps/search/search_run.h"
#include "jobs_database.h"
#include "search_command.h"

namespace kolo::app {
namespace fs = std::filesystem;
namespace {

struct SubmitOptions : SearchOptions, PpoCommandOptions {
  std::string kind;
  std::vector<std::string> names;
  std::string workflow, setup;
  std::vector<std::string> program;
  AllocationOptions allocation;
  void declare(OptionSet& set);
};
constexpr Option<SubmitOptions> kSubmitRows[] = {
    {&SubmitOptions::kind, "KIND", "",
     "Search for hyperparameters (hps) or for architectures (nas).", choices("hps|nas")},
    {&SubmitOptions::names, "SEARCH", "",
     "The search, as `kolo hps` and `kolo nas` take it; ambs or regevo if there is none.",
     is_optional},
    {&SubmitOptions::workflow, "workflow", "NAME",
     "Give the jobs this workflow, and the new folder this name.", aliases("-w")},
    {&SubmitOptions::setup, "setup", "FILE",
     "Let bash source this file before the search and before each evaluation.",
     aliases("-as --activation-script")},
    {&SubmitOptions::program, "PROGRAM", "",
     "A program that evaluates a point, as `kolo hps` takes it.", is_optional,
     takes(cli::Takes::separated)},
};
void SubmitOptions::declare(OptionSet& set) {
  set.add("Submission", kSubmitRows, *this);
  allocation.declare(set);
  declare_search(set, *this);
  declare_ppo(set, *this);
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

std::vector<std::string_view> search_names(bool nas) {
  std::vector<std::string_view> names;
  for (const auto& row : nas ? nas_searches() : hps_searches()) names.push_back(row.name);
  return names;
}

/// A single name that is no search is the workflow's, unless it looks like a search.
void refuse_misspelt_search(bool nas, const std::string& name) {
  if (const auto near = nearest_name(name, search_names(nas)); !near.empty())
    throw_error(ErrorCode::invalid_argument,
                "there is no search '{}'; did you mean '{}'? If it is the name of the workflow, "
                "give it as -w {}",
                name, near, name);
}

/// SEARCH -w NAME, or only NAME as DeepHyper's older form had it.
void take_names(const SubmitOptions& options, Submission& submission) {
  submission.nas = options.kind == "nas";
  submission.search = submission.nas ? "regevo" : "ambs";
  submission.workflow = options.workflow;
  const auto& names = options.names;
  if (names.size() > 2)
    throw_error(ErrorCode::invalid_argument, "'{}' is one argument too many", names[2]);
  if (!names.empty()) {
    const bool is_first_a_search =
        names.size() == 2 || !submission.workflow.empty() || is_search(submission.nas, names[0]);
    if (!is_first_a_search) refuse_misspelt_search(submission.nas, names[0]);
    (is_first_a_search ? submission.search : submission.workflow) = names[0];
  }
  if (names.size() == 2) submission.workflow = names[1];
  if (!is_search(submission.nas, submission.search))
    throw_unknown_name("search", submission.search, search_names(submission.nas),
                       ErrorCode::invalid_argument);
  const auto& name = submission.workflow;
  if (name.empty() || name == "." || name == ".." || name.find_first_of("/\n") != std::string::npos)
    throw_error(ErrorCode::invalid_argument,
                "the name of the workflow is missing: give -w NAME, without a /");
}

/// The words of the search, as one text that is split again without a shell.
std::string search_arguments(const OptionSet& given) {
  // The same options as the search itself has, and so the same names.
  SearchOptions ignored;
  PpoCommandOptions ignored_ppo;
  OptionSet passed;
  declare_search(passed, ignored);
  declare_ppo(passed, ignored_ppo);
  std::string text = "--evaluator jobs";
  for (const auto& row : passed.rows()) {
    const auto& name = row.text.name;
    if (name == "num-agents") continue;  // they are the nodes of the job
    for (auto value : given.at(name).given) {
      if (name == "problem" || name == "run" || name == "warm-start") value = absolute_name(value);
      text += fmt::format(" --{}", name);
      if (!row.text.value.empty()) text += " " + shell_quoted(value);
    }
  }
  return text;
}

Submission read_submission(const SubmitOptions& options, const OptionSet& given) {
  Submission submission;
  take_names(options, submission);
  if (submission.search != "ppo") refuse(given, kPpoHeading, submission.search);
  auto& launch = submission.launch;
  launch = options.allocation.request();
  launch.workflow = submission.workflow;

  auto& application = submission.application;
  application.name = fmt::format("{}-{}", options.kind, submission.search);
  application.executable =
      fmt::format("{} {} {}", shell_quoted(own_program()), options.kind, submission.search);
  if (!options.setup.empty()) {
    if (!fs::exists(options.setup))
      throw_error(ErrorCode::not_found, "--setup: there is no file {}", options.setup);
    application.envscript = fs::absolute(options.setup).string();
    application.name += "-" + submission.workflow;
  }
  auto& job = submission.job;
  job.name = submission.workflow;
  job.workflow = submission.workflow;
  job.application = application.name;
  // A search that is cut off by the end of an allocation goes on in the next one.
  job.args = search_arguments(given) + " --resume";
  if (submission.nas && !options.program.empty())
    throw_error(ErrorCode::invalid_argument, "kolo submit nas takes no program after --");
  if (auto words = options.program; !words.empty()) {
    words.front() = absolute_program(words.front(), fs::current_path());
    job.args += " -- " + shell_line(words);
  }
  job.wall_time_minutes = launch.batch.minutes;
  job.node_packing_count = options.plan.evaluator.num_evals_per_node;
  if (options.num_agents) job.num_nodes = *options.num_agents;
  if (job.num_nodes > launch.batch.nodes)
    throw_error(ErrorCode::invalid_argument, "{} agents need as many nodes; the allocation has {}",
                job.num_nodes, launch.batch.nodes);
  return submission;
}

/// Asks kolo-nas, because the problems of nas need libtorch, which this program does not have.
void check_nas(const Submission& submission, const std::string& arguments) {
  std::vector<std::string> words{program_beside("kolo-nas"), "check", submission.search};
  for (auto& word : split_words(arguments, "the search")) words.push_back(std::move(word));
  const auto checked = run_command(words, Deadline::after(std::chrono::minutes(1)));
  // Warnings may stand before the error.
  constexpr std::string_view kError = "kolo nas check: ";
  const std::string& said = checked.errors;
  const auto error = checked.ok() ? said.size() : std::min(said.find(kError), said.size());
  fmt::print(stderr, "{}", std::string_view(said).substr(0, error));
  if (checked.ok()) return;
  if (error == said.size())
    throw_error(ErrorCode::internal, "kolo-nas check {}", describe_wait_status(checked.status));
  std::string_view message = std::string_view(said).substr(error + kError.size());
  while (message.ends_with('\n')) message.remove_suffix(1);
  constexpr int kUsageError = 2;
  throw_error(exit_code_of(checked.status) == kUsageError ? ErrorCode::invalid_argument
                                                          : ErrorCode::failed_precondition,
              "{}", message);
}

/// What the search would refuse when its job runs is refused now.
void check_submission(SubmitOptions options, const OptionSet& given, const Submission& submission) {
  if (submission.nas) {
    check_nas(submission, search_arguments(given));
    return;
  }
  options.search = submission.search;
  auto& plan = options.plan;
  make_plan(options, given, hps_searches());
  take_problem(plan, options.program);
  hps::read_warm_start(plan);
  // How evaluations run is for the nodes to know.
  plan.evaluator = {};
  if (!plan.is_users_program) plan.evaluator.method = "serial";
  hps::check_search(plan);
}

/// The script as it will be, also before there is a database.
std::string script_for(const fs::path& folder, const launch::BatchSystem& system,
                       const jobs::LaunchRequest& request) {
  const auto written = [&](jobs::JobDatabase database) {
    return jobs::launch_script(database, system, request, "qlaunch");
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

/// The job of a submission that was cut short, or of one that goes on: a second one would search
/// the same again.
std::optional<jobs::JobId> same_job(jobs::JobDatabase& database, const jobs::Job& wanted) {
  for (const auto& job : database.find({.workflow = wanted.workflow, .name = wanted.name}))
    if (job.name == wanted.name && job.workflow == wanted.workflow &&
        job.application == wanted.application && job.args == wanted.args &&
        job.num_nodes == wanted.num_nodes && !jobs::is_end(job.state))
      return job.id;
  return std::nullopt;
}

int run_submit(SubmitOptions& options, OptionSet& given) {
  Submission submission = read_submission(options, given);
  check_submission(options, given, submission);
  const auto system = launch::make_batch_system(options.allocation.scheduler);
  const fs::path folder = environment("KOLO_DB").value_or(submission.workflow);
  const bool exists = fs::exists(folder);
  if (options.allocation.dry_run) {
    fmt::print("# {} {}\n# application {}: {}\n# job {}: {}\n",
               exists ? "database" : "new database", folder.string(), submission.application.name,
               submission.application.executable, submission.job.name, submission.job.args);
    if (const auto& setup = submission.application.envscript; !setup.empty()) {
      fmt::print("# before the search and each evaluation bash sources {}:\n", setup);
      std::istringstream lines(read_file(setup));
      for (std::string line; std::getline(lines, line);) fmt::print("#   {}\n", line);
    }
    fmt::print("{}", script_for(folder, *system, submission.launch));
    return 0;
  }
  // A launch that is refused leaves no job behind.
  (void)script_for(folder, *system, submission.launch);
  auto database = exists ? jobs::JobDatabase::open(folder) : jobs::JobDatabase::init(folder);
  database.set_application(submission.application);
  const auto earlier = same_job(database, submission.job);
  const auto job = earlier ? *earlier : database.create(submission.job);
  if (!earlier) submission.launch.jobs = {job};
  const auto launch = jobs::submit_launch(database, *system, submission.launch);
  fmt::print("{} job {} ({} {}) {} {}\nsubmitted launch {} as {} job {}\nresults will be in {}\n",
             earlier ? "found" : "added", number_of(job), options.kind, submission.search,
             earlier ? "in" : "to", database.folder().string(), launch.id, launch.scheduler,
             launch.scheduler_id, database.folder_of(database.job(job)).string());
  return 0;
}

}  // namespace

constinit const Command kSubmit{
    .name = "submit",
    .summary = "Submit a search to the batch system by one command",
    .examples =
        "kolo submit hps ambs -w TEST -n 128 -t 180 -q default -A myproject \\\n"
        "    --problem benchmark.hps.polynome2 --max-evals 10000\n",
    .notes =
        "It makes a folder with a database of jobs, or uses the one of KOLO_DB, adds the "
        "search as a job, and submits a launcher that runs it and its evaluations.",
    .options = declared<SubmitOptions>,
    .run = run_declared<SubmitOptions, run_submit>,
};

}  // namespace kolo::app
