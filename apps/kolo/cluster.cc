// kolo up, kolo down, kolo status, kolo drain: hosts as one machine.
#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "base/json.h"
#include "base/plural.h"
#include "base/text_table.h"
#include "cluster/batch_nodes.h"
#include "cluster/bring_up.h"
#include "cluster/members.h"
#include "cluster/status.h"
#include "cluster_argument.h"
#include "commands.h"
#include "dashboard_beside.h"
#include "study_store.h"
#include "watching.h"

namespace kolo::app {
namespace {

std::chrono::milliseconds seconds(double value) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(value * 1000));
}

void print_report(const cluster::HostReport& report) {
  if (report.is_failure)
    fmt::print(
        stderr, "kolo: {}\n",
        report.what.starts_with(report.host) ? report.what : report.host + ": " + report.what);
  else
    fmt::print("{}: {}\n", report.host, report.what);
  std::fflush(stdout);
}

struct UpCommand {
  std::string file;
  double timeout = 60;
  bool dashboard = false;
  void declare(OptionSet& set);
};
constexpr Option<UpCommand> kUpRows[] = {
    {&UpCommand::file, "FILE", "", "The file that describes the cluster (docs/cluster.md)."},
    {&UpCommand::timeout, "timeout", "SECONDS",
     "Give up on a host that has not answered after this many seconds. Each command of the file "
     "may "
     "take an hour.",
     least(1), most(86'400)},
    {&UpCommand::dashboard, "dashboard", "",
     "When the cluster is up, serve a page about studies and jobs until Ctrl-C, and print its "
     "address. The cluster stays up afterwards."},
};
void UpCommand::declare(OptionSet& set) { set.add("Options", kUpRows, *this); }

void serve_dashboard() {
  const auto* const interrupted = catch_interrupts();
  const auto served = dashboard_beside({});
  fmt::print("dashboard: {}\n", served->address());
  std::fflush(stdout);
  serve_until(*interrupted);
}

int run_up(UpCommand& options) {
  const auto file = cluster::load_cluster_file(options.file);
  cluster::UpOptions up;
  up.host_time = seconds(options.timeout);
  if (cluster::bring_up(file, up, print_report)) {
    fmt::print("cluster {} is up: kolo run --cluster {} -np 2 PROGRAM\n", file.name, file.name);
    if (options.dashboard) serve_dashboard();
    return 0;
  }
  fmt::print(stderr,
             "kolo: cluster {} is not complete; `kolo up {}` again goes on, `kolo down {}` ends "
             "what is up\n",
             file.name, options.file, file.name);
  return 1;
}

struct DownCommand {
  std::string name;
  bool force = false;
  double timeout = 10;
  void declare(OptionSet& set);
};
constexpr Option<DownCommand> kDownRows[] = {
    {&DownCommand::force, "force", "",
     "Forget the cluster even if a host does not answer. Its custodian keeps running on that "
     "host."},
    {&DownCommand::timeout, "timeout", "SECONDS",
     "Give up on a host that has not answered after this many seconds.", least(1), most(86'400)},
};
void DownCommand::declare(OptionSet& set) {
  set.add("Arguments", kClusterArgument, &name);
  set.add("Options", kDownRows, *this);
}

int run_down(DownCommand& options) {
  const std::string name = cluster_named(options.name);
  if (cluster::bring_down(name, options.force, seconds(options.timeout), print_report)) return 0;
  fmt::print(stderr,
             "kolo: cluster {} is not ended on every host; try again when they answer, or forget "
             "them with --force\n",
             name);
  return 1;
}

struct StatusCommand {
  std::string name;
  bool json = false;
  void declare(OptionSet& set);
};
void StatusCommand::declare(OptionSet& set) {
  set.add("Arguments", kClusterArgument, &name);
  set.add("Options", kJsonOutput, &json);
}

void print_status(const std::string& name, const std::vector<cluster::LinkedMember>& members) {
  int slots = 0, free = 0;
  std::vector<std::vector<std::string>> rows = {{"HOST", "STATE", "SLOTS", "FREE", "USED BY"}};
  for (const auto& linked : members) {
    slots += linked.holdings.total.slots;
    if (!linked.holdings.is_draining) free += linked.holdings.free.slots;
    const std::string host = linked.member.host + (linked.member.is_head ? " (head)" : "");
    if (!linked.answers()) {
      rows.push_back({host, cluster::state_of(linked), "", "", linked.error});
      continue;
    }
    std::string used;
    for (const auto& held : linked.holdings.held)
      used += fmt::format("{}{}: {}", used.empty() ? "" : "; ", held.owner,
                          exec::describe(held.amounts));
    rows.push_back({host, cluster::state_of(linked), std::to_string(linked.holdings.total.slots),
                    std::to_string(linked.holdings.free.slots), used});
  }
  fmt::print("cluster {}: {}, {} of {} slots free\n{}", name,
             counted(static_cast<std::int64_t>(members.size()), "host"), free, slots,
             text_table(rows));
}

int run_status(StatusCommand& options) {
  const auto found = cluster::load_cluster(cluster_named(options.name));
  if (found.members.empty() && found.job && !options.json) {
    fmt::print("cluster {} has no hosts yet: {}\n", found.name, cluster::describe_job(*found.job));
    return 1;
  }
  const auto members = cluster::link_all(found, cluster::owner_name("kolo status"),
                                         Deadline::after(cluster::answer_time(found)));
  if (options.json)
    fmt::print("{}\n", json_text(cluster::status_json(found.name, members), 2));
  else
    print_status(found.name, members);
  const bool is_whole = std::all_of(members.begin(), members.end(),
                                    [](const auto& linked) { return linked.answers(); });
  return is_whole ? 0 : 1;
}

struct DrainCommand {
  std::string name, host;
  bool undo = false;
  void declare(OptionSet& set);
};
constexpr Option<DrainCommand> kDrainRows[] = {
    {&DrainCommand::host, "HOST", "", "The host, as `kolo status` names it."},
};
constexpr Option<DrainCommand> kDrainOptions[] = {
    {&DrainCommand::undo, "undo", "", "Let the host take work again."},
};
void DrainCommand::declare(OptionSet& set) {
  set.add("Arguments", kClusterNeeded, &name);
  set.add("Arguments", kDrainRows, *this);
  set.add("Options", kDrainOptions, *this);
}

int run_drain(DrainCommand& options) {
  const auto found = cluster::load_cluster(cluster_named(options.name));
  const auto holdings =
      cluster::drain_host(found, options.host, !options.undo, cluster::owner_name("kolo drain"));
  if (options.undo)
    fmt::print("{} takes work again\n", options.host);
  else
    fmt::print("{} takes nothing new; {} still run there\n", options.host,
               counted(static_cast<std::int64_t>(holdings.held.size()), "reservation"));
  return 0;
}

}  // namespace

constinit const Command kUp{
    .name = "up",
    .summary = "Start a cluster on the hosts of a file",
    .examples = "kolo up cluster.yaml\n",
    .notes =
        "Hosts that are up already are not touched: repeat the command after a change of the file, "
        "or when a host was lost.",
    .options = declared<UpCommand>,
    .run = run_declared<UpCommand, run_up>,
    .heading = "Commands for clusters",
};

constinit const Command kDown{
    .name = "down",
    .summary = "End a cluster with everything that runs on it",
    .examples = "kolo down lab\n",
    .options = declared<DownCommand>,
    .run = run_declared<DownCommand, run_down>,
};

constinit const Command kStatus{
    .name = "status",
    .summary = "Show the hosts of a cluster and who uses what",
    .examples = "kolo status\nkolo status lab --json\n",
    .notes = "The exit status is 1 if a host is lost.",
    .options = declared<StatusCommand>,
    .run = run_declared<StatusCommand, run_status>,
};

constinit const Command kDrain{
    .name = "drain",
    .summary = "Let a host of a cluster finish what runs there and take nothing new",
    .examples = "kolo drain lab 10.0.0.3\nkolo drain lab 10.0.0.3 --undo\n",
    .options = declared<DrainCommand>,
    .run = run_declared<DrainCommand, run_drain>,
};

}  // namespace kolo::app
