// kolo: the command line.
#include <unistd.h>

#include <cstdio>

#include "base/errors.h"
#include "base/registry.h"
#include "commands.h"
#include "kolo/version.h"

namespace kolo::app {
namespace {

constexpr int kUsageError = 2;
constexpr int kFailure = 1;

constexpr Command kCommands[] = {
    {"run", "run a program as many ranks, on this machine and others", run_command_run},
    {"tune", "try a program with many settings and find good ones", run_command_tune},
    {"hps", "search for hyperparameters, as DeepHyper does", run_command_hps},
    {"nas", "search for network architectures", run_command_nas},
    {"new-problem", "begin a problem of your own: a folder that builds and runs",
     run_command_new_problem},
    {"analytics", "what searches found: best, tables, pictures", run_command_analytics},
    {"report", "from inside a trial: a result to its study", run_command_report},
    {"studies", "the studies there are", run_command_studies},
    {"trials", "the trials of a study: sorted, filtered", run_command_trials},
    {"best", "the best trial of a study", run_command_best},
    {"resume", "go on with a study, or extend it", run_command_resume},
    {"stop", "end a study or one of its trials", run_command_stop},
    {"export", "a study as CSV or JSON", run_command_export},
    {"report-html", "a study as one page with pictures", run_command_report_html},
    {"info", "what this kolo was built with and what it finds here", run_command_info},
    {"list", "the known names of a family, for example of transports", run_command_list},
    {"init", "make a database of jobs", run_command_init},
    {"activate", "print shell code that makes a database the current one", run_command_activate},
    {"which", "which database is the current one", run_command_which},
    {"app", "add an application that jobs run", run_command_app},
    {"job", "add a job", run_command_job},
    {"dep", "let a job wait for another", run_command_dep},
    {"ls", "list jobs, applications, workflows, launches", run_command_ls},
    {"modify", "change a job", run_command_modify},
    {"rm", "remove jobs or applications", run_command_rm},
    {"kill", "end jobs", run_command_kill},
    {"launcher", "run jobs on the nodes at hand", run_command_launcher},
    {"submit", "a search in an allocation of the batch system, by one command", run_command_submit},
    {"submit-launch", "submit a launcher to the batch system", run_command_submit_launch},
    {"explain", "why a job does not run", run_command_explain},
    {"stats", "throughput, utilisation and errors of jobs", run_command_stats},
    {"log", "show the log of a launch or the output of a job", run_command_log},
    {"evaluate", "", run_command_evaluate},
    {"custodian", "", run_command_custodian},
    {"manual", "", run_command_manual},
};

void print_overview() {
  fmt::print("kolo {}: distributed deep learning\n\nUsage: kolo COMMAND [OPTIONS]\n\nCommands:\n",
             KOLO_VERSION);
  for (const auto& command : kCommands)
    if (!command.summary.empty()) fmt::print("  {:<14} {}\n", command.name, command.summary);
  fmt::print("\nkolo COMMAND --help tells more. kolo --version prints the version.\n");
}

int dispatch(const Arguments& arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ||
      arguments[0] == "help") {
    print_overview();
    return arguments.empty() ? kUsageError : 0;
  }
  if (arguments[0] == "--version" || arguments[0] == "-v" || arguments[0] == "version") {
    fmt::print("kolo {}\n", KOLO_VERSION);
    return 0;
  }
  std::vector<std::string_view> known;
  for (const auto& command : kCommands) {
    if (command.name == arguments[0])
      return command.run(Arguments(arguments.begin() + 1, arguments.end()));
    if (!command.summary.empty()) known.push_back(command.name);
  }
  throw_unknown_name("command", arguments[0], known, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace kolo::app

int main(int argc, char** argv) {
  using namespace kolo;
  const app::Arguments arguments(argv + 1, argv + argc);
  // "kolo run", where the line below comes from.
  const std::string who =
      arguments.empty() || arguments[0].starts_with('-') ? "kolo" : "kolo " + arguments[0];
  try {
    return app::dispatch(arguments);
  } catch (const Error& error) {
    fmt::print(stderr, "{}: {}\n", who, error.message());
    return error.code() == ErrorCode::invalid_argument ? app::kUsageError : app::kFailure;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", who, error.what());
    return app::kFailure;
  }
}
