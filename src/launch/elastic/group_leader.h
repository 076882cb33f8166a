// Leads the workers of one elastic job: hears them (Lobby), decides (Roster), and makes the meeting
// place of each group. Whoever owns it has the processes: it starts and kills them, tells their
// ends, and polls.
//
// Nothing blocks. One thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/secret.h"
#include "base/socket.h"
#include "comm/elastic/lobby.h"
#include "comm/rendezvous/server.h"
#include "launch/elastic/roster.h"

namespace kolo::launch::elastic {

/// What the owner is to do. Each may be called from within any call of the leader that changes
/// something.
struct LeaderOrders {
  std::function<void(int worker, const HostPool::Slot& slot)> start;
  std::function<void(int worker)> kill;
  /// The job is over: whatever still runs is to be ended. `reason` is "" if the work is done. Also
  /// what the leader cannot do, and what the other orders throw, ends the job.
  std::function<void(int status, const std::string& reason)> end;
  std::function<void(const std::string& line)> say;
  /// A group was formed, of these workers.
  std::function<void(Generation generation, const std::vector<int>& members)> formed;
  /// What a rank says that it does; from another thread. May be empty.
  std::function<void(int rank, const comm::ActivityReport& report)> heard{};
};

/// Numbers from 0 to 1. Launchers that lost the same host at the same moment are not to come back
/// at the same moment.
std::function<double()> random_draw();

class GroupLeader {
 public:
  /// Workers meet at `listen`, whose address may be 0.0.0.0.
  GroupLeader(const RosterOptions& options, HostPool hosts, const SocketAddress& listen,
              LeaderOrders orders);

  /// What workers prove themselves by, and where they come.
  [[nodiscard]] const Secret& secret() const noexcept { return secret_; }
  [[nodiscard]] const SocketAddress& door() const { return lobby_.addresses().front(); }

  // --- events -----------------------------------------------------------------------------------
  void hosts_changed(std::vector<Host> hosts);
  /// Its process is gone. `code` is 0 or what a shell would say. What it said before counts first.
  void ended(int worker, int code, const std::string& how);
  /// It was not started: somebody else has its slot.
  void refused(int worker);
  /// Hears the workers. Call it when poll_fd() is readable.
  void hear();
  /// Does what is due.
  void keep_time();
  /// Somebody else has decided that the job ends.
  void stop() noexcept { roster_.stop(); }

  // --- questions --------------------------------------------------------------------------------
  [[nodiscard]] int poll_fd() const noexcept { return lobby_.poll_fd(); }
  /// When keep_time() has something to do.
  [[nodiscard]] std::optional<Deadline> next() const;
  [[nodiscard]] std::size_t living() const noexcept { return roster_.living(); }
  [[nodiscard]] bool is_over() const noexcept { return roster_.is_over(); }
  /// Of a living worker.
  [[nodiscard]] const HostPool::Slot& slot_of(int worker) const { return roster_.slot_of(worker); }
  /// There was a group.
  [[nodiscard]] bool has_formed_group() const noexcept { return has_formed_group_; }

 private:
  void carry_out(const Actions& actions);
  void carry_out(const StartWorker& action) { orders_.start(action.worker, action.slot); }
  void carry_out(const KillWorker& action) { orders_.kill(action.worker); }
  void carry_out(const RetireWorker& action) {
    lobby_.send(action.worker, comm::elastic::Retire{});
  }
  void carry_out(const FormGroup& action);
  std::unique_ptr<comm::rendezvous::Server> meeting_place(Generation generation, int size);
  void carry_out(const RequestChange& action);
  void carry_out(const TellOver& action) {
    lobby_.send(action.worker, comm::elastic::Over{action.generation});
  }
  void carry_out(const TellToWait& action) { lobby_.send(action.worker, comm::elastic::Wait{}); }
  void carry_out(const AnnounceLoss& action);
  void carry_out(const EndJob& action) { orders_.end(action.status, action.reason); }
  void carry_out(const Say& action) { orders_.say(action.text); }

  LeaderOrders orders_;
  Secret secret_ = Secret::random();
  Roster roster_;
  comm::elastic::Lobby lobby_;
  std::unique_ptr<comm::rendezvous::Server> server_;  // of the group at work
  std::vector<int> members_;
  bool has_formed_group_ = false;
};

}  // namespace kolo::launch::elastic
