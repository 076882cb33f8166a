// kolo dashboard: studies and jobs in a browser.
#include <fmt/format.h>

#include <cstdlib>
#include <thread>

#include "base/files.h"
#include "commands.h"
#include "dashboard/access.h"
#include "dashboard_beside.h"
#include "jobs_database.h"
#include "study_store.h"
#include "tune/study/study.h"
#include "watching.h"

namespace kolo::app {
namespace {

namespace fs = std::filesystem;

struct DashboardCommand {
  std::string storage, jobs, host = "127.0.0.1";
  int port = dashboard::kUsualPort;
  bool read_only = false;
  void declare(OptionSet& set);
};
constexpr Option<DashboardCommand> kDashboardRows[] = {
    {&DashboardCommand::port, "port", "N", "Listen on this port; 0 takes any free one.", least(0),
     most(65535)},
    {&DashboardCommand::host, "host", "ADDRESS",
     "Listen on this address of the machine. Others can then try to connect, and the traffic is "
     "not encrypted; from another machine, prefer an ssh tunnel."},
    {&DashboardCommand::read_only, "read-only", "", "Show everything, and refuse every action."},
    {&DashboardCommand::jobs, "jobs", "DIR", "Show the jobs of the database in this folder.",
     fallback("the folder in KOLO_DB, or this one if it has a database of jobs")},
};
void DashboardCommand::declare(OptionSet& set) {
  set.add("Options", kDashboardRows, *this);
  set.add("Options", kStorage, &storage);
}

dashboard::DashboardOptions served_options(const tune::Options& study) {
  const fs::path state = state_folder();
  return {.storage = tune::storage_url(study),
          .jobs = jobs_folder(),
          .token = dashboard::kept_token(state / "dashboard.token"),
          .actions = state / "dashboard-actions.jsonl"};
}

int run_dashboard(DashboardCommand& options) {
  const auto* const interrupted = catch_interrupts();
  tune::Options study;
  study.storage = options.storage;
  auto serving = served_options(study);
  serving.host = options.host;
  serving.port = options.port;
  serving.read_only = options.read_only;
  if (!options.jobs.empty()) serving.jobs = options.jobs;
  const dashboard::Dashboard served(std::move(serving));
  fmt::print("{}\n", served.address());
  std::fflush(stdout);
  serve_until(*interrupted);
  return 0;
}

}  // namespace

std::unique_ptr<dashboard::Dashboard> dashboard_beside(const tune::Options& study) {
  auto serving = served_options(study);
  try {
    return std::make_unique<dashboard::Dashboard>(serving);
  } catch (const Error&) {  // another one has the usual port
    serving.port = 0;
    return std::make_unique<dashboard::Dashboard>(std::move(serving));
  }
}

void serve_until(const std::atomic<bool>& interrupted) {
  while (!interrupted) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

constinit const Command kDashboard{
    .name = "dashboard",
    .summary = "Show studies and jobs in a browser, live",
    .examples = "kolo dashboard\nkolo dashboard --port 0 --read-only\n",
    .notes =
        "It prints the address to open, with a token that lets you in, and runs until Ctrl-C. "
        "Everybody who has the address can see and stop what you run (docs/dashboard.md).",
    .options = declared<DashboardCommand>,
    .run = run_declared<DashboardCommand, run_dashboard>,
};

}  // namespace kolo::app
