#include "commands.h"

namespace kolo::app {
namespace {

constexpr const Command* kAllCommands[] = {
    &kRun,       &kTune,      &kResume,    &kStudies, &kTrials,   &kBest,         &kStop,
    &kExport,    &kImport,    &kDelete,    &kRename,  &kCopy,     &kReport,       &kReportHtml,
    &kDashboard, &kTop,       &kHps,       &kNas,     &kSubmit,   &kAnalytics,    &kNewProblem,
    &kInit,      &kActivate,  &kWhich,     &kApp,     &kJob,      &kDep,          &kLs,
    &kModify,    &kRm,        &kKill,      &kRetry,   &kLauncher, &kSubmitLaunch, &kExplain,
    &kStats,     &kLog,       &kUp,        &kDown,    &kStatus,   &kDrain,        &kExec,
    &kAttach,    &kRsyncUp,   &kRsyncDown, &kInfo,    &kList,     &kManual,       &kCompletion,
    &kEvaluate,  &kCustodian, &kComplete,
};

}  // namespace

constinit const Command kKolo{
    .name = "kolo",
    .summary = "Train, tune and search neural networks on many cores, hosts and clusters",
    .examples =
        "kolo run -np 4 ./train --epochs 3\n"
        "kolo tune --space space.yaml --metric loss --mode min -- ./train --lr {lr}\n"
        "kolo nas regevo --problem benchmark.nas.linear_reg --max-evals 50\n",
    .notes =
        "kolo --version prints the version. `source <(kolo completion bash)` completes "
        "commands, options and names in bash; zsh and fish work likewise.",
    .subcommands = kAllCommands,
};

}  // namespace kolo::app
