// The commands of `kolo`: one constant each, in the file that runs it; commands.cc lists them.
#pragma once

#include "cli/command.h"

namespace kolo::app {

using cli::Command;
using cli::declared;
using cli::NamedText;
using cli::Option;
using cli::OptionSet;
using cli::OptionText;
using cli::run_declared;
using cli::Takes;
using namespace cli::rows;

/// `kolo` itself, with all its commands.
extern const Command kKolo;

extern const Command kRun, kCustodian;
extern const Command kTune, kResume, kReport;
extern const Command kStudies, kTrials, kBest, kStop, kExport, kReportHtml, kDashboard, kTop,
    kImport;
extern const Command kDelete, kRename, kCopy;
extern const Command kHps, kNas, kEvaluate, kNewProblem, kAnalytics;
extern const Command kInit, kActivate, kWhich, kApp, kJob, kDep, kModify;
extern const Command kLs, kRm, kKill, kRetry, kExplain, kStats, kLog;
extern const Command kLauncher, kSubmit, kSubmitLaunch;
extern const Command kUp, kDown, kStatus, kDrain, kExec, kAttach, kRsyncUp, kRsyncDown;
extern const Command kInfo, kList, kManual, kCompletion, kComplete;

}  // namespace kolo::app
