// kolo report: from inside a trial, a result to its study.
#include "base/env.h"
#include "commands.h"
#include "tune/protocol/trial_client.h"

namespace kolo::app {
namespace {

/// The trial shall end: a status that no success has.
constexpr int kTrialShallEnd = 3;

struct ReportOptions {
  std::vector<std::string> metrics;
  std::string checkpoint;
  void declare(OptionSet& set);
};
constexpr Option<ReportOptions> kReportRows[] = {
    {&ReportOptions::metrics, "NAME=VALUE", "", "A metric and its value."},
    {&ReportOptions::checkpoint, "checkpoint", "DIRECTORY",
     "Keep this directory as a checkpoint of the trial. Inside the trial's directory it belongs to "
     "the study, which removes old ones; anywhere else it is only remembered."},
};
void ReportOptions::declare(OptionSet& set) { set.add("Options", kReportRows, *this); }

int run_report(ReportOptions& options) {
  const auto metrics = tune::parse_assignments(options.metrics);
  // Of a trial of several ranks, rank 0 speaks.
  if (setting_integer("RANK").value_or(0) != 0) return 0;
  auto link = tune::TrialLink::from_environment(/*own_connection=*/true);
  // A relative path means what it means here, whatever folder the study runs in.
  const auto checkpoint = options.checkpoint.empty()
                              ? std::filesystem::path()
                              : std::filesystem::absolute(options.checkpoint);
  link.send(tune::report_line(metrics, checkpoint));
  return link.wait_for_answer().reply == tune::Reply::proceed ? 0 : kTrialShallEnd;
}

}  // namespace

constinit const Command kReport{
    .name = "report",
    .summary = "Report results of the trial that calls it, and tell whether the trial goes on",
    .examples = "kolo report loss=0.31 epoch=4 || exit 0\n",
    .notes =
        "Exit status: 0 if the trial goes on, 3 if it shall end, 1 if the study no longer runs.",
    .options = declared<ReportOptions>,
    .run = run_declared<ReportOptions, run_report>,
};

}  // namespace kolo::app
