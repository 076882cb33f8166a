// A host that answers at its known address is left as it is. Otherwise the order is: initialization
// commands, file mounts, setup commands, the custodian, and a link to it as a test that it can be
// reached from here. On a node of a batch job the custodian exists first and runs the commands as
// tasks, so no ssh is needed; files are not mounted. A known address also means that the node is
// prepared; it is removed when a command fails, so that the next `kolo up` runs the commands again.
#include "cluster/host_start.h"

#include "base/errors.h"
#include "base/subprocess.h"
#include "cluster/host_shell.h"
#include "cluster/members.h"
#include "cluster/standing.h"

namespace kolo::cluster {
namespace {

/// The first host that could be anything is `localhost`: others could not use its loopback.
std::string address_for(const HostShell& shell, const std::string& host) {
  if (!shell.is_local()) return "";  // where ssh arrives
  for (const auto& address : resolve_host(host))
    if (is_own_address(address)) return address.host();
  return "127.0.0.1";
}

std::string slots_of(const Cluster& cluster, const LinkedMember& linked) {
  std::string text =
      fmt::format("{} at {}", exec::describe(linked.holdings.total), linked.member.address->str());
  if (linked.holdings.is_draining)
    text += fmt::format("; it takes nothing new until `kolo drain {} {} --undo`", cluster.name,
                        linked.member.host);
  return text;
}

LinkedMember link_to(const Cluster& cluster, const Member& member) {
  return link_one(cluster, member, owner_name("kolo up"), Deadline::after(answer_time(cluster)));
}

/// A command of the file.
struct Command {
  const std::string* line;
  std::string_view key;
};

void add(std::vector<Command>& commands, const std::vector<std::string>& lines,
         std::string_view key) {
  for (const auto& line : lines) commands.push_back({&line, key});
}

std::vector<Command> initialization_of(const ClusterFile& file) {
  std::vector<Command> commands;
  add(commands, file.initialization_commands, "initialization_commands");
  return commands;
}

std::vector<Command> setup_of(const ClusterFile& file, bool is_head) {
  std::vector<Command> commands;
  add(commands, file.setup_commands, "setup_commands");
  if (is_head)
    add(commands, file.head_setup_commands, "head_setup_commands");
  else
    add(commands, file.worker_setup_commands, "worker_setup_commands");
  return commands;
}

/// Runs it; an error then says which command it was.
template <class Run>
void named(const Command& command, Run&& run) {
  try {
    run();
  } catch (const Error& error) {
    throw_error(error.code(), "{} (`{}` of {})", error.message(), *command.line, command.key);
  }
}

/// The custodian runs the line for us, and ends it if we end.
void run_on_node(std::vector<LinkedMember>& one, const std::string& line, Deadline deadline) {
  const std::string& host = one.front().member.host;
  exec::Task task;
  task.id = 1;
  task.argv = {"/bin/sh", "-c", line};
  task.streams.to_owner = true;
  one.front().link->start(task);
  CommandResult said;
  std::optional<exec::TaskEnd> end;
  const auto on_event = [&](LinkedMember&, const exec::Event& event) {
    if (const auto* output = std::get_if<exec::Output>(&event))
      (output->stream == exec::Stream::out ? said.output : said.errors) += output->bytes;
    if (const auto* ended = std::get_if<exec::TaskEnd>(&event)) end = *ended;
  };
  while (!end) {
    if (!wait_for_any(one, deadline, on_event) && deadline.passed())
      throw_error(ErrorCode::timeout, "{}: it takes too long", host);
    if (!end && !one.front().answers())
      throw_error(ErrorCode::unavailable, "{}: {}", host, one.front().error);
  }
  if (!end->error.empty()) throw_error(ErrorCode::unavailable, "{}: {}", host, end->error);
  said.status = end->status;
  if (!said.ok()) throw_error(ErrorCode::unavailable, "{}: {}", host, last_line_of(said));
}

/// The way of a host that is reached by ssh. Throws; every message names the host.
class HostStart {
 public:
  HostStart(const ClusterFile& file, const Cluster& cluster, const std::string& host,
            const UpOptions& options)
      : file_(file),
        cluster_(cluster),
        host_(host),
        options_(options),
        shell_(file.ssh, host, file.kolo) {}

  HostReport run(Member& member) {
    if (member.address) {
      try {
        return {host_, "stands already: " + slots_of(cluster_, link_to(cluster_, member))};
      } catch (const Error&) {
        member.address.reset();  // it was lost
      }
    }
    prepare(member.is_head);
    StandingOrder order{cluster_.name,         cluster_.key,    address_for(shell_, host_),
                        file_.offer_of(host_), file_.idle_time, file_.keep_alive};
    const StandingAnswer answer = parse(
        shell_.run_kolo("custodian standing", Deadline::after(options_.host_time), encode(order)));
    member.address = SocketAddress::parse(answer.address);
    try {
      return {host_, slots_of(cluster_, link_to(cluster_, member))};
    } catch (const Error& error) {
      member.address.reset();
      throw_error(error.code(),
                  "{}; its custodian (process {}) listens at {}, which must be reachable from "
                  "here; if it is of an earlier cluster of this name, end it there by `kill {}`",
                  error.message(), answer.process, answer.address, answer.process);
    }
  }

 private:
  StandingAnswer parse(const std::string& output) const {
    try {
      return parse_standing_answer(output);
    } catch (const Error& error) {
      throw_error(error.code(), "{}: {}", host_, error.message());
    }
  }
  void prepare(bool is_head) const {
    const auto run_all = [&](const std::vector<Command>& commands) {
      for (const auto& command : commands)
        named(command,
              [&] { shell_.run_guarded(*command.line, Deadline::after(options_.setup_time)); });
    };
    run_all(initialization_of(file_));
    for (const auto& [there, here] : file_.file_mounts)
      shell_.copy_to(here, there, Deadline::after(options_.setup_time));
    run_all(setup_of(file_, is_head));
  }

  const ClusterFile& file_;
  const Cluster& cluster_;
  const std::string& host_;
  const UpOptions& options_;
  HostShell shell_;
};

}  // namespace

HostReport start_on_host(const ClusterFile& file, const Cluster& cluster, const UpOptions& options,
                         Member& member) {
  return HostStart(file, cluster, member.host, options).run(member);
}

HostReport start_on_node(const ClusterFile& file, const Cluster& cluster, const UpOptions& options,
                         const KeptNodes::Node& node, Member& member) {
  if (!node.error.empty()) throw_error(ErrorCode::unavailable, "{}: {}", node.host, node.error);
  const auto address = SocketAddress::parse(node.address);
  const bool is_prepared = member.address && member.address->str() == address.str();
  member.address = address;
  try {
    std::vector<LinkedMember> one;
    one.push_back(link_to(cluster, member));
    const std::string slots = slots_of(cluster, one.front());
    if (is_prepared) return {node.host, "stands already: " + slots};
    auto commands = initialization_of(file);
    for (const auto& command : setup_of(file, member.is_head)) commands.push_back(command);
    for (const auto& command : commands)
      named(command, [&] { run_on_node(one, *command.line, Deadline::after(options.setup_time)); });
    return {node.host, slots};
  } catch (const Error&) {
    if (!is_prepared) member.address.reset();  // so that the next attempt prepares it
    throw;
  }
}

}  // namespace kolo::cluster
