// Which Bootstrap a process gets follows from its launcher: kolo run has a rendezvous server; under
// mpirun and srun MPI itself is used if the plug-in is there and the transport allows it; otherwise
// rank 0 hosts a server, for which the job needs an id that all its ranks know.
#include "comm/bootstrap.h"

#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "comm/elastic/membership.h"
#include "comm/launchers.h"
#include "comm/rendezvous/client.h"
#include "comm/rendezvous/hosted.h"
#include "comm/wire/messenger.h"

namespace kolo::comm {

namespace {

class LoneBootstrap final : public Bootstrap {
 public:
  [[nodiscard]] const Topology& topology() const noexcept override { return topology_; }
  [[nodiscard]] std::string describe() const override { return "alone"; }
  std::vector<std::string> allgather(std::string_view key, const std::vector<int>& members,
                                     std::string_view mine, Deadline /*deadline*/) override {
    if (members != std::vector<int>{0})
      throw_error(ErrorCode::invalid_argument, "meeting '{}': this job has rank 0 only", key);
    return {std::string(mine)};
  }

 private:
  Topology topology_;
};

std::shared_ptr<Bootstrap> meet_at_launcher(const Launched& launched, Deadline deadline) {
  std::vector<int> host_of_rank;
  for (std::size_t host = 0; host < launched.ranks_per_host.size(); ++host)
    host_of_rank.insert(host_of_rank.end(), static_cast<std::size_t>(launched.ranks_per_host[host]),
                        static_cast<int>(host));
  rendezvous::ClientOptions options{SocketAddress::parse(launched.rendezvous),
                                    read_secret_file(launched.secret_fd, launched.custodian_pid),
                                    Topology(launched.rank, std::move(host_of_rank)),
                                    describe(launched.launcher),
                                    -1,
                                    nullptr};
  return std::make_shared<rendezvous::Client>(std::move(options), deadline);
}

/// Hydra gives its jobs no name. On one host, its proxy is an ancestor of every rank; which one,
/// and since when, no other job shares. "" if it cannot be seen.
std::string name_of_hydra_job() {
  pid_t pid = ::getppid();
  while (pid > 1) {
    std::string stat;
    try {
      stat = read_file(fmt::format("/proc/{}/stat", pid));
    } catch (const Error&) {
      return {};
    }
    const auto open = stat.find('('), close = stat.rfind(')');
    std::istringstream rest(stat.substr(close + 2));
    std::string field;
    pid_t parent = 0;
    std::string started;
    for (int i = 3; i <= 22 && rest >> field; ++i) {  // proc(5): 4 = ppid, 22 = starttime
      if (i == 4) parent = static_cast<pid_t>(std::stol(field));
      if (i == 22) started = field;
    }
    if (stat.substr(open + 1, close - open - 1).starts_with("hydra"))
      return fmt::format("mpich-{}-{}", pid, started);
    pid = parent;
  }
  return {};
}

/// The plug-in that speaks the launcher's own language, if it is wanted and there.
std::shared_ptr<Bootstrap> meet_through_mpi(const Launched& launched, const std::string& plugin) {
  const std::string transport = setting("TRANSPORT").value_or("auto");
  const bool wanted = transport.ends_with("mpi");  // also shm+mpi
  if (!wanted && transport != "auto") return nullptr;
  std::string why;
  if (!wanted && !wire_plugin_available(plugin, &why)) {
    log::info("started by {}, but the rendezvous does not use MPI: {}", describe(launched.launcher),
              why);
    return nullptr;
  }
  auto bootstrap = load_wire_plugin(plugin).make_bootstrap();
  const Topology& topology = bootstrap->topology();
  if (topology.rank() != launched.rank || topology.size() != launched.size)
    throw_error(ErrorCode::invalid_argument,
                "the environment says rank {} of {}, but MPI says rank {} of {}; the MPI plug-in "
                "in use is probably not that of this mpirun",
                launched.rank, launched.size, topology.rank(), topology.size());
  return bootstrap;
}

}  // namespace

Departure departure_by_status(int rank, int status) {
  return {rank, describe_wait_status(status),
          status == 0 ? DepartureKind::finished : DepartureKind::failed};
}

std::shared_ptr<Bootstrap> make_lone_bootstrap() { return std::make_shared<LoneBootstrap>(); }

std::shared_ptr<Bootstrap> make_bootstrap_from_environment(std::chrono::milliseconds patience,
                                                           std::chrono::milliseconds timeout) {
  const Deadline deadline = Deadline::after(patience);
  Launched launched = read_launcher(environment);
  std::string plugin;
  switch (launched.launcher) {
    case Launcher::none: return make_lone_bootstrap();
    case Launcher::kolo:
      if (launched.worker >= 0) {
        auto& membership = elastic::Membership::of_this_process(launched, deadline);
        membership.tell_timeout(timeout);
        return membership.join(patience);
      }
      return launched.size == 1 ? make_lone_bootstrap() : meet_at_launcher(launched, deadline);
    case Launcher::openmpi: plugin = "openmpi"; break;
    case Launcher::mpich: plugin = "mpich"; break;
    case Launcher::slurm:
      // srun --mpi=pmix; --mpi=pmi2 was taken for MPICH's own launcher already.
      if (environment("PMIX_RANK")) plugin = "openmpi";
      break;
  }
  if (!plugin.empty())
    if (auto bootstrap = meet_through_mpi(launched, plugin)) return bootstrap;
  if (launched.size == 1) return make_lone_bootstrap();
  if (launched.launcher == Launcher::mpich && launched.job.empty() && launched.one_host)
    launched.job = name_of_hydra_job();
  return rendezvous::make_hosted_bootstrap(launched, deadline);
}

}  // namespace kolo::comm
