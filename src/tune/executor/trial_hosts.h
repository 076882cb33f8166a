// The hosts that trials run on, each with one custodian (src/exec) of the study.
//
// The custodian of this machine holds the lock of the study's directory with everything it starts.
// So a study begins when nothing of an earlier session is left here, and two runs of a trial never
// write into its directory at the same time. Custodians of other hosts are at the end of ssh. They
// end with their tasks when the study is gone, or when they have not heard from it for the time of
// a lease, as on a host that is cut off. What an earlier session left on such a host is waited for
// there, by a lock of that host.
//
// The hosts of a cluster (src/cluster) have custodians already, which serve others, too: there,
// each trial reserves its slots before it begins.
//
// A host that is lost gets no trials as long as there are others, and is tried again now and then.
//
// Nothing blocks but the constructor and lose(). One thread at a time.
#pragma once

#include <poll.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "cluster/cluster.h"
#include "cluster/gang.h"
#include "exec/link.h"
#include "exec/ssh.h"
#include "launch/hosts.h"

namespace kolo::tune {

struct TrialHostsSetup {
  std::filesystem::path study_directory;
  std::vector<launch::Host> hosts{};  ///< none = this machine
  exec::SshOptions ssh{};
  std::string batch_system{};         ///< whose nodes the hosts are; "" = they are reached by ssh
  std::string cluster{};              ///< that the hosts are of
  exec::Amounts each_rank{1, 0, {}};  ///< of a cluster
  std::chrono::milliseconds start_timeout{30'000};
  std::chrono::milliseconds lease{60'000};  ///< of other hosts
};

struct TrialHost {
  std::string name;
  int slots = 1;
  bool is_local = false;
  /// The command that reaches another host, which is found out once: to look up a name takes long
  /// while the network is away.
  std::vector<std::string> way{};
  int load = 0;                         ///< ranks that run there
  std::unique_ptr<exec::Link> link{};   ///< unset while the host is lost
  std::optional<exec::Hello> hello{};   ///< of another host that has answered
  exec::Holdings holdings{};            ///< of a host of a cluster
  std::optional<Deadline> answer_by{};  ///< of another host that has not
  std::optional<Deadline> try_again{};  ///< of a host that is lost
  std::string warned_of{};              ///< why that failed: each reason is told once

  [[nodiscard]] bool is_ready() const noexcept { return link && (is_local || hello); }
};

class TrialHosts {
 public:
  /// Waits until no process of an earlier session of the study is left here, and until every host
  /// has answered. Throws invalid_argument, io, and unavailable for a host that cannot be used.
  explicit TrialHosts(TrialHostsSetup setup);

  /// Places `ranks` ranks on each of `nodes` hosts: those with the most free slots, this machine
  /// first. Places are never refused; the study decides how many trials run at once.
  [[nodiscard]] std::vector<launch::Placement> take(int nodes, int ranks);
  /// Places one more rank, where the most slots are free.
  void add_rank(std::vector<launch::Placement>& placements);
  /// Of a cluster: places where, as far as is known, slots are free now; empty if there are too
  /// few.
  [[nodiscard]] std::vector<launch::Placement> take_free(int nodes, int ranks);
  /// Asks the hosts of a cluster for the slots of these places.
  [[nodiscard]] std::unique_ptr<cluster::Gang> reserve(
      const std::vector<launch::Placement>& placements);
  [[nodiscard]] bool are_cluster() const noexcept { return cluster_.has_value(); }
  /// How many trials fit at once on the hosts that are known, when nobody else uses them.
  [[nodiscard]] int trials_at_once(int nodes, int ranks) const;
  void give_back(const std::vector<launch::Placement>& placements);

  [[nodiscard]] TrialHost& at(const std::string& name);
  [[nodiscard]] std::deque<TrialHost>& all() noexcept { return hosts_; }
  /// Makes a link to a host that has none. Throws if its command cannot be run.
  void open(TrialHost& host);
  /// Takes what the host's custodian says; a hello is taken in here. Throws corruption.
  std::vector<exec::Event> receive(TrialHost& host);
  /// Why the host must be given up now: its link has closed, or it does not answer in time.
  [[nodiscard]] std::optional<std::string> loss_of(TrialHost& host);
  /// Gives the host up until it answers again.
  void lose(TrialHost& host);

  /// Adds the descriptors to poll.
  void add_polls(std::vector<pollfd>& polls) const;
  /// Sends what waits, renews leases, and tries lost hosts again when it is time.
  void keep_up();
  /// How long to poll at most; -1 = until something comes.
  [[nodiscard]] int poll_timeout_ms() const;
  /// Whoever polls must look again: something waits to be sent, or for a host to answer.
  [[nodiscard]] bool needs_poll() const;

 private:
  void wait_for_all();
  /// Hosts that were added to the cluster.
  void take_new_members();
  /// The command that runs a custodian there; empty = it is this machine.
  [[nodiscard]] std::vector<std::string> way_to(const std::string& host) const;
  [[nodiscard]] std::vector<launch::Placement> place(const std::vector<TrialHost*>& hosts,
                                                     int ranks);

  TrialHostsSetup setup_;
  std::optional<cluster::Cluster> cluster_;
  exec::ReservationId next_reservation_ = 1;
  std::deque<TrialHost> hosts_;    // places stay where they are
  std::optional<Deadline> renew_;  // of the leases; none without other hosts
  std::optional<Deadline> look_;   // for new hosts of a cluster
};

}  // namespace kolo::tune
