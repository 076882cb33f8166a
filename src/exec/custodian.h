// The one who starts, watches and ends processes on a host, for one owner or for several.
//
// What it promises:
//   - A task's end is told once, and only when nothing of the task is left on the host: neither in
//     its process group nor elsewhere, because the custodian adopts orphans and knows them by the
//     task's mark. (A process that throws its environment away is found when the custodian ends.)
//   - An owner that is gone, for whatever reason, has its tasks ended, and no others.
//   - A custodian that was started by its owner ends with it.
//   - If the custodian itself is killed, the kernel kills the tasks, and its guard (start.h) kills
//     what they left.
//
// One thread, on events. It allocates descriptors for its tasks' output alone, and a task that
// cannot be started costs that task only.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/secret.h"
#include "exec/channel.h"
#include "exec/environment.h"
#include "exec/protocol.h"
#include "exec/start_task.h"
#include "exec/task_table.h"

namespace kolo::exec {

/// What a custodian that listens is told when it begins.
struct Standing {
  Secret secret;
  Amounts has;                             ///< what can be reserved
  std::chrono::milliseconds idle_time{0};  ///< ends after so long without owners; 0 = never
  std::chrono::seconds keep_alive = kUsualKeepAlive;  ///< of owners
  std::filesystem::path note{};  ///< a file that says where it is; removed at the end
  std::filesystem::path log{};   ///< a file that says why it ended, unless an owner told it to
};

/// What all processes of a family hold on this host (start.h).
struct HostFamily {
  Fd lock;
  std::filesystem::path file;  ///< for the last one of the family to remove
};

class Custodian final : private Processes {
 public:
  /// `family_lock` is inherited by all tasks, so that it is free when all of them are gone; an
  /// invalid one is fine.
  explicit Custodian(Fd family_lock = {});

  /// Serves the owner at the other end. The custodian ends when the last such owner is gone.
  void serve(Channel channel);
  /// Serves every owner that connects and proves to know the secret, until SIGTERM or an order to
  /// shut down.
  void listen(Fd listener, Standing standing);

  /// Until there is nobody left to serve, and nothing left of the tasks. The exit status.
  int run();

 private:
  using Time = TaskTable::Time;

  struct Owner {
    Channel channel;
    std::string name;
    bool is_bound = false;     // its end is ours
    bool is_trusted = false;   // takes orders
    bool is_finished = false;  // no task will follow
    bool has_spoken = false;
    std::chrono::milliseconds lease{0};
    std::optional<Time> lost_at;  // unless it speaks before
    Environment environment;
    /// Of a custodian that listens: tasks begin when those of earlier owners of it have ended.
    std::string family;
    std::vector<Frame> waiting;                      // orders about tasks, until then
    std::map<std::string, Fd, std::less<>> secrets;  // sealed files, by content
    bool has_news = false;                           // since the last end of a line
  };
  struct Outputs {  // of a task
    Fd out, err;
    std::filesystem::path said_in;
    std::size_t said_from = 0;
    bool tell_exit = false;
    ReservationId reservation = 0;
    std::string family{};
  };
  using TaskKey = std::pair<OwnerId, TaskId>;

  // Processes
  void signal(pid_t process, int signal) override;
  void signal_group(pid_t leader, int signal) override;
  std::vector<pid_t> children() override;
  Membership membership(pid_t process, const std::string& mark) override;

  OwnerId add_owner(Channel channel, bool is_bound);
  void accept_owners();
  void read_orders(OwnerId id);
  void obey(OwnerId id, Owner& owner, const Frame& order);
  void welcome(OwnerId id, Owner& owner, const Claim& claim);
  void say_hello(OwnerId id, Owner& owner);
  void reserve(OwnerId id, const Owner& owner, const ReservationOrder& order);
  void give_from_reservation(OwnerId id, Task& task) const;
  void settle_reservations();
  void begin_to_listen(OwnerId id, const Owner& owner, const ListenOrder& order);
  [[nodiscard]] bool has_bound_owner() const;
  void shut_down(OwnerId last);
  void shut_down_because(const std::string& reason);
  void end_if_idle(Time now);
  static void renew_lease(Owner& owner);
  void obey_about_task(OwnerId id, Owner& owner, const Frame& order);
  [[nodiscard]] bool is_anything_left_of(const std::string& family, OwnerId but) const;
  void obey_those_that_waited();
  void start(OwnerId id, Owner& owner, Task task);
  void lose(OwnerId id);
  void lose_silent_owners(Time now);

  void read_output(TaskKey key, Outputs& outputs, Stream stream);
  void drain(TaskKey key, Outputs& outputs);
  void take_signals();
  void reap();
  void tell_ends(Time now);
  void tell(OwnerId owner, std::string_view message);
  void flush();
  void flush_to_the_end();
  void wait_for_events(Time now);
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] int poll_timeout_ms(Time now) const;

  Fd signals_, family_lock_, listener_;
  HostFamily family_of_host_;
  std::optional<Standing> standing_;
  Ledger ledger_;
  bool ledger_changed_ = false;
  std::optional<Time> idle_until_;
  TaskTable table_{*this};
  std::map<OwnerId, Owner> owners_;
  std::map<TaskKey, Outputs> outputs_;
  OwnerId next_owner_ = 1;
  std::uint64_t next_mark_ = 1;
  std::string mark_prefix_;
  pid_t parent_;  // the guard, as long as it lives
  Environment environment_;
  std::optional<Time> accept_again_;
};

}  // namespace kolo::exec
