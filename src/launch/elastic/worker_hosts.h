// The hosts on which an elastic job has workers: a custodian on each, reached when the first worker
// is wanted there, and forgotten when the connection to it is lost.
//
// Nothing blocks. One thread at a time.
#pragma once

#include <fmt/core.h>
#include <poll.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/secret.h"
#include "base/socket.h"
#include "exec/link.h"
#include "launch/elastic/host_pool.h"
#include "launch/supervisor.h"

namespace kolo::launch::elastic {

/// What happens on the hosts. Whoever is told may start and kill workers at once.
struct HostEvents {
  std::function<void(const exec::Output&)> output;
  std::function<void(int worker, int wait_status)> exited;
  /// It could not be started, or its host was lost.
  std::function<void(int worker, const std::string& how)> lost;
  /// Its slot on a host of a cluster has gone to somebody else.
  std::function<void(int worker)> refused;
  std::function<void(const std::string& line)> say;
};

class WorkerHosts {
 public:
  /// `door` is where the launcher listens; its address may be 0.0.0.0.
  WorkerHosts(const ParallelJob& job, const Secret& secret, const SocketAddress& door,
              HostEvents events);

  void start(int worker, const HostPool::Slot& slot);
  void kill(int worker);
  /// Ends all workers, with the grace time of the job or at once. Nothing is started from then on.
  void end_all(bool at_once);
  /// Something may be left of a worker.
  [[nodiscard]] bool anything_left() const;

  void add_polls(std::vector<pollfd>& polls, bool may_read);
  /// After poll(): `polls` are those that add_polls() has added.
  void work(const pollfd* polls);
  /// When work() has something to do in any case.
  [[nodiscard]] std::optional<Deadline> next() const;

 private:
  struct Entry {
    std::unique_ptr<exec::Link> link;
    bool is_local = false, is_ready = false;
    std::string door;                     // as its workers reach it
    std::map<int, HostPool::Slot> asked;  // workers to be started when it is ready
    std::set<int> alive;                  // workers whose program runs
    std::set<int> unwaited;               // workers of which something may be left
    std::set<int> refused;                // workers without a slot
    std::optional<Deadline> answer_by;
  };

  void connect(const std::string& name, Entry& host);
  void begin(const std::string& name, Entry& host);
  void start_task(const std::string& name, Entry& host, int worker, const HostPool::Slot& slot);
  void receive(const std::string& name, Entry& host);
  void handle(const std::string& name, Entry& host, exec::Event& event);
  void lose(const std::string& name, const std::string& reason);
  void check_deadlines();
  template <class... Args>
  void detail(fmt::format_string<Args...> format, Args&&... args) {
    if (job_.verbose) events_.say(fmt::format(format, std::forward<Args>(args)...));
  }

  const ParallelJob& job_;
  const Secret& secret_;
  SocketAddress door_;
  HostEvents events_;
  std::map<std::string, Entry> hosts_;
  std::vector<std::string> polled_;  // names, in the order of the polls
  std::chrono::milliseconds lease_;
  Deadline renew_;
  bool is_ending_ = false;
  std::optional<Deadline> give_up_;
};

}  // namespace kolo::launch::elastic
