// kolo exec, kolo attach, kolo rsync-up, kolo rsync-down: hands on the hosts of a cluster.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "base/errors.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "cluster/host_shell.h"
#include "cluster/members.h"
#include "cluster_argument.h"
#include "commands.h"
#include "exec/environment.h"
#include "launch/output.h"

namespace kolo::app {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kCopyTime = 24h;

/// Which hosts a command is for.
struct WhichHosts {
  std::string host;
  bool all = false;

  [[nodiscard]] std::vector<cluster::Member> of(const cluster::Cluster& found) const {
    if (all && !host.empty())
      throw_error(ErrorCode::invalid_argument, "--host and --all exclude each other");
    if (all) return found.members;
    return {host.empty() ? found.head() : found.at(host)};
  }
};
constexpr OptionText kHostOption{
    "host", "HOST", "Do it on this host, as `kolo status` names it.", {.fallback = "the head"}};
constexpr OptionText kAllOption{"all", "", "Do it on all hosts.", {.aliases = "-A"}};

// --- kolo exec ---

struct ExecCommand {
  std::string name;
  WhichHosts which;
  std::vector<std::string> program;
  void declare(OptionSet& set);
};
constexpr Option<ExecCommand> kExecRows[] = {
    {&ExecCommand::program, "PROGRAM", "", "The program and its arguments.", takes(Takes::program)},
};
void ExecCommand::declare(OptionSet& set) {
  set.add("Arguments", kClusterNeeded, &name);
  set.add("Arguments", kExecRows, *this);
  set.add("Options", kHostOption, &which.host);
  set.add("Options", kAllOption, &which.all);
}

/// Prints what the hosts' tasks print: as it is for one host, else lines with the host's name.
class ExecOutput {
 public:
  explicit ExecOutput(bool is_prefixed) : is_prefixed_(is_prefixed) {}

  void take(const std::string& host, const exec::Output& output) {
    const int fd = output.stream == exec::Stream::out ? STDOUT_FILENO : STDERR_FILENO;
    if (!is_prefixed_) {
      write_all(fd, output.bytes, "the output");
      return;
    }
    const auto print = [&](std::string_view line, std::string_view end) {
      write_all(fd, fmt::format("{}: {}{}", host, line, end), "the output");
    };
    auto& splitter = splitters_[{host, fd}];
    output.bytes.empty() ? splitter.finish(print) : splitter.feed(output.bytes, print);
  }

 private:
  bool is_prefixed_;
  std::map<std::pair<std::string, int>, launch::LineSplitter> splitters_;
};

exec::Task task_of(const ExecCommand& options) {
  exec::Task task;
  task.id = 1;
  task.argv = options.program;
  task.streams.to_owner = true;
  return task;
}

/// Of all hosts, those that do not answer are among them.
std::vector<cluster::LinkedMember> links_for(const WhichHosts& which,
                                             const cluster::Cluster& found) {
  const auto hosts = which.of(found);
  const std::string owner = cluster::owner_name("kolo exec");
  const auto deadline = Deadline::after(cluster::answer_time(found));
  if (which.all) return cluster::link_all(found, owner, deadline);
  std::vector<cluster::LinkedMember> only;
  only.push_back(cluster::link_one(found, hosts.front(), owner, deadline));
  return only;
}

int run_exec(ExecCommand& options) {
  const auto found = cluster::load_cluster(cluster_named(options.name));
  auto members = links_for(options.which, found);
  const auto environment = exec::forwardable(current_environment());
  for (auto& linked : members) {
    if (!linked.answers()) continue;
    linked.link->set_environment(environment);
    linked.link->start(task_of(options));
  }
  ExecOutput printed(members.size() > 1);
  std::map<std::string, int> ended;
  const auto on_event = [&](cluster::LinkedMember& linked, const exec::Event& event) {
    const std::string& host = linked.member.host;
    if (const auto* output = std::get_if<exec::Output>(&event)) printed.take(host, *output);
    const auto* end = std::get_if<exec::TaskEnd>(&event);
    if (end == nullptr) return;
    if (!end->error.empty()) fmt::print(stderr, "kolo exec: {}: {}\n", host, end->error);
    ended[host] = end->error.empty() ? exit_code_of(end->status) : 127;
  };
  const auto note_lost = [&] {
    for (const auto& linked : members) {
      if (linked.answers() || ended.contains(linked.member.host)) continue;
      fmt::print(stderr, "kolo exec: {} was lost: {}\n", linked.member.host, linked.error);
      ended[linked.member.host] = 1;
    }
  };
  for (note_lost(); ended.size() < members.size(); note_lost())
    cluster::wait_for_any(members, Deadline::after(1h), on_event);
  for (const auto& [host, status] : ended)
    if (status != 0) return status;
  return 0;
}

// --- kolo attach ---

struct AttachCommand {
  std::string name;
  WhichHosts which;
  void declare(OptionSet& set);
};
void AttachCommand::declare(OptionSet& set) {
  set.add("Arguments", kClusterArgument, &name);
  set.add("Options", kHostOption, &which.host);
}

int run_attach(AttachCommand& options) {
  const auto found = cluster::load_cluster(cluster_named(options.name));
  const cluster::HostShell shell(found.ssh, options.which.of(found).front().host, found.kolo);
  const auto words = shell.login_words();
  std::vector<char*> pointers;
  for (const auto& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  throw_errno("cannot run {}", words.front());
}

// --- kolo rsync-up, kolo rsync-down ---

struct CopyCommand {
  std::string name, source, target;
  WhichHosts which;
};
struct UploadCommand : CopyCommand {
  void declare(OptionSet& set);
};
struct DownloadCommand : CopyCommand {
  void declare(OptionSet& set);
};
constexpr OptionText kFromHere{"SOURCE", "", "A file or directory of this machine."};
constexpr OptionText kToThere{"TARGET", "",
                              "Its path on the hosts; ~ is the home directory there."};
constexpr OptionText kFromThere{"SOURCE", "", "A file or directory of the host."};
constexpr OptionText kToHere{"TARGET", "", "Its path on this machine."};

void UploadCommand::declare(OptionSet& set) {
  set.add("Arguments", kClusterNeeded, &name);
  set.add("Arguments", kFromHere, &source);
  set.add("Arguments", kToThere, &target);
  set.add("Options", kHostOption, &which.host);
  set.add("Options", kAllOption, &which.all);
}
void DownloadCommand::declare(OptionSet& set) {
  set.add("Arguments", kClusterNeeded, &name);
  set.add("Arguments", kFromThere, &source);
  set.add("Arguments", kToHere, &target);
  set.add("Options", kHostOption, &which.host);
}

int run_rsync_up(UploadCommand& options) {
  const auto found = cluster::load_cluster(cluster_named(options.name));
  int status = 0;
  for (const auto& member : options.which.of(found)) {
    try {
      cluster::HostShell(found.ssh, member.host, found.kolo)
          .copy_to(fs::absolute(options.source), options.target, Deadline::after(kCopyTime));
    } catch (const Error& error) {  // the other hosts get it all the same
      fmt::print(stderr, "kolo rsync-up: {}\n", error.message());
      status = 1;
    }
  }
  return status;
}

int run_rsync_down(DownloadCommand& options) {
  const auto found = cluster::load_cluster(cluster_named(options.name));
  cluster::HostShell(found.ssh, options.which.of(found).front().host, found.kolo)
      .copy_from(options.source, options.target, Deadline::after(kCopyTime));
  return 0;
}

}  // namespace

constinit const Command kExec{
    .name = "exec",
    .summary = "Run a program on hosts of a cluster",
    .examples = "kolo exec lab -- nproc\nkolo exec lab --all -- df -h /data\n",
    .notes =
        "The program starts in the home directory and reserves nothing. The exit status is that of "
        "the program, or of the first host where it failed; a host that does not answer is named, "
        "and has failed.",
    .options = declared<ExecCommand>,
    .run = run_declared<ExecCommand, run_exec>,
};

constinit const Command kAttach{
    .name = "attach",
    .summary = "Log in to a host of a cluster",
    .examples = "kolo attach lab\nkolo attach lab --host 10.0.0.3\n",
    .options = declared<AttachCommand>,
    .run = run_declared<AttachCommand, run_attach>,
};

constinit const Command kRsyncUp{
    .name = "rsync-up",
    .summary = "Copy a file or the content of a directory to hosts of a cluster",
    .examples = "kolo rsync-up lab data ~/data --all\n",
    .notes = "Files of the same name are replaced, others stay. The hosts need ssh and tar.",
    .options = declared<UploadCommand>,
    .run = run_declared<UploadCommand, run_rsync_up>,
};

constinit const Command kRsyncDown{
    .name = "rsync-down",
    .summary = "Copy a file or the content of a directory from a host of a cluster",
    .examples = "kolo rsync-down lab results results\n",
    .options = declared<DownloadCommand>,
    .run = run_declared<DownloadCommand, run_rsync_down>,
};

}  // namespace kolo::app
