// The owner's end of the line to a custodian: on this machine, at the end of a command (ssh, srun),
// or standing on a host and found by its socket.
//
// Nothing blocks, except where it says so; the owner polls the descriptors. One thread at a time.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/secret.h"
#include "exec/channel.h"
#include "exec/protocol.h"
#include "exec/task.h"

namespace kolo::exec {

/// A reservation was granted.
struct Reserved {
  ReservationId id = 0;
};

using Event =
    std::variant<Hello, Output, Exited, TaskEnd, Reserved, Refusal, Holdings, HostLoad, Listening>;

class Link {
 public:
  /// A custodian of this machine, as a child of this process. Everything it starts holds the lock
  /// on `family` (see lock_family), if that is not "". Throws io.
  static std::unique_ptr<Link> to_this_machine(const std::filesystem::path& family = {});
  /// Runs `command`, at whose other end a custodian speaks. `name` is its host in messages.
  /// Throws if the command itself cannot be run.
  static std::unique_ptr<Link> through(const std::vector<std::string>& command, std::string name);
  /// A custodian that listens. Everything is sealed; the socket may still be connecting. Hello
  /// comes when each side has proven to the other that it knows the secret. `owner` names this
  /// process in messages; a link that says nothing for `lease` counts as lost there (0 = never):
  /// call renew() more often.
  static std::unique_ptr<Link> to_socket(Fd socket, const Secret& secret, std::string name,
                                         const std::string& owner, std::chrono::milliseconds lease);

  /// Closes the line: the custodian ends this owner's tasks by itself. A child of this process is
  /// waited for, at most until the tasks' grace time is over and nothing of them is left. A command
  /// whose other end has not answered is killed.
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  // Descriptors to poll; -1 = not now.
  [[nodiscard]] int read_fd() const noexcept { return channel_.read_fd(); }
  [[nodiscard]] int write_fd() const noexcept { return channel_.write_fd(); }
  [[nodiscard]] int error_fd() const noexcept { return errors_.get(); }

  /// Blocks until the custodian has said hello, which is not told by receive() then; what came
  /// with it is there at once. Throws unavailable, timeout, or failed_precondition if the secrets
  /// differ.
  Hello wait_for_hello(Deadline deadline);

  // Orders are sent at once as far as possible; flush() sends the rest.
  /// What all later tasks get on top of the custodian's own environment.
  void set_environment(const std::vector<std::string>& environment);
  /// A TaskEnd follows, whatever happens, unless the link closes before.
  void start(const Task& task);
  void end(TaskId task);
  void kill(TaskId task);
  /// From now on the custodian ends the tasks if it hears nothing for so long, as on a host that is
  /// cut off: call renew() more often. 0 = only a closed line tells.
  void set_lease(std::chrono::milliseconds lease);
  void renew();
  /// To be said before the first task. Tasks that earlier owners of the same user and family have
  /// on that host end before new ones begin.
  void set_family(std::string_view family);
  /// No task will follow. A custodian that was started for this link then ends by itself when its
  /// tasks have, even if the link is cut and nobody can tell it.
  void finish();
  /// Lets others use the custodian that was started for this link, as long as the link is there.
  /// Listening follows.
  void listen(const ListenOrder& order);
  void flush() { channel_.flush(); }

  // Orders to a custodian that listens.
  /// A Reserved or a Refusal follows.
  void reserve(ReservationId id, const Amounts& want);
  /// Free again as soon as no task of it is left.
  void release(ReservationId id);
  /// Tasks that name no reservation of their own get this one.
  void use_reservation(ReservationId id) noexcept { reservation_ = id; }
  void drain(bool is_draining);
  /// A HostLoad follows.
  void measure();
  /// Ends the tasks of all owners and the custodian; the link closes when nothing is left.
  void shut_down();

  /// What has come; reads once. Throws corruption.
  std::vector<Event> receive();
  /// Takes what the command says on its standard error.
  void read_errors();

  /// Something has come from the other side.
  [[nodiscard]] bool has_answered() const noexcept { return has_answered_; }
  /// The other side is gone: no event will come.
  [[nodiscard]] bool closed() const noexcept { return channel_.closed(); }
  /// After closed(): waits for the command and says in one line why it ended.
  std::string reason_of_end();
  /// Ends the command, or the custodian of this machine, by force.
  void kill_command() noexcept;

 private:
  Link(std::string name, Channel channel);
  void send(Kind kind, std::string_view payload = {}, const std::vector<int>& descriptors = {});

  std::string name_;
  Channel channel_;
  std::string command_;       // its name; "" = a custodian of this machine, or one that listens
  bool is_standing_ = false;  // it listens
  std::vector<Event> early_;  // came with the hello that was waited for
  ReservationId reservation_ = 0;
  pid_t pid_ = -1;
  bool has_answered_ = false;
  Fd errors_;
  std::string error_text_;  // the end of what the command said
};

}  // namespace kolo::exec
