// The commands of `kolo`: one file and one row in main.cc each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kolo::app {

using Arguments = std::vector<std::string>;

struct Command {
  std::string_view name;
  std::string_view summary;  ///< one line; empty = not listed
  /// `arguments` come after the command's name. Returns the exit status; throws kolo::Error, whose
  /// invalid_argument is a usage error (exit 2) and all else a failure (exit 1).
  int (*run)(const Arguments& arguments);
};

int run_command_run(const Arguments& arguments);
int run_command_info(const Arguments& arguments);
int run_command_list(const Arguments& arguments);
int run_command_tune(const Arguments& arguments);
int run_command_hps(const Arguments& arguments);
int run_command_nas(const Arguments& arguments);
int run_command_evaluate(const Arguments& arguments);
int run_command_analytics(const Arguments& arguments);
int run_command_new_problem(const Arguments& arguments);
int run_command_resume(const Arguments& arguments);
int run_command_report(const Arguments& arguments);
int run_command_studies(const Arguments& arguments);
int run_command_trials(const Arguments& arguments);
int run_command_best(const Arguments& arguments);
int run_command_stop(const Arguments& arguments);
int run_command_export(const Arguments& arguments);
int run_command_report_html(const Arguments& arguments);
int run_command_custodian(const Arguments& arguments);
int run_command_manual(const Arguments& arguments);

// Jobs.
int run_command_init(const Arguments& arguments);
int run_command_activate(const Arguments& arguments);
int run_command_which(const Arguments& arguments);
int run_command_app(const Arguments& arguments);
int run_command_job(const Arguments& arguments);
int run_command_dep(const Arguments& arguments);
int run_command_modify(const Arguments& arguments);
int run_command_ls(const Arguments& arguments);
int run_command_rm(const Arguments& arguments);
int run_command_kill(const Arguments& arguments);
int run_command_launcher(const Arguments& arguments);
int run_command_submit(const Arguments& arguments);
int run_command_submit_launch(const Arguments& arguments);
int run_command_explain(const Arguments& arguments);
int run_command_stats(const Arguments& arguments);
int run_command_log(const Arguments& arguments);

}  // namespace kolo::app
