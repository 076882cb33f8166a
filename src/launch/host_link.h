// The launcher's end of the line to one host's agent.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "launch/agent_protocol.h"
#include "launch/hosts.h"

namespace kolo::launch {

struct SshOptions {
  std::vector<std::string> command = {"ssh"};  ///< the program and first arguments
  std::optional<int> port;
  std::string identity_file;
  std::string remote_kolo;  ///< path of `kolo` on the other host
  int connect_timeout_seconds = 30;
};

/// KOLO_SSH, KOLO_SSH_PORT, KOLO_SSH_IDENTITY_FILE and KOLO_REMOTE_KOLO, for launchers without
/// options of their own. `kolo` is where the program is unless the last of them says it.
SshOptions ssh_from_environment(const std::string& kolo);

/// The complete ssh command that runs an agent (or another helper of kolo's) on `host`. The only
/// part a shell sees (the other side's) is the path of kolo, quoted.
std::vector<std::string> ssh_command(const SshOptions& options, const std::string& host,
                                     std::string_view helper = "agent");

class HostLink {
 public:
  /// An agent as a child of this process. No other thread may run when this is called.
  static std::unique_ptr<HostLink> to_this_machine(Placement placement);
  /// An agent on another host. Throws if ssh itself cannot be run.
  static std::unique_ptr<HostLink> by_ssh(Placement placement, const SshOptions& options);

  ~HostLink();
  HostLink(const HostLink&) = delete;
  HostLink& operator=(const HostLink&) = delete;

  [[nodiscard]] const Placement& placement() const noexcept { return placement_; }
  [[nodiscard]] bool is_remote() const noexcept { return is_remote_; }

  // Descriptors to poll; -1 = not now.
  [[nodiscard]] int read_fd() const noexcept { return from_.get(); }
  [[nodiscard]] int error_fd() const noexcept { return errors_.get(); }
  [[nodiscard]] int write_fd() const noexcept { return outbox_.empty() ? -1 : to_.get(); }

  /// Queues a frame and sends what can be sent now.
  void send(std::string_view frame);
  void flush();
  /// Frames that have come; reads once. Throws corruption.
  std::vector<Frame> receive();
  /// Takes what ssh says on its standard error.
  void read_errors();

  /// The other side has closed: nothing more will come.
  [[nodiscard]] bool closed() const noexcept { return !from_.valid(); }

  /// After closed(): waits for the child and says why it ended, in one line.
  std::string reason_of_end();
  void kill() noexcept;

 private:
  HostLink(Placement placement, bool is_remote)
      : placement_(std::move(placement)), is_remote_(is_remote) {}
  void skip_to_greeting(std::string_view bytes);

  Placement placement_;
  bool is_remote_;
  pid_t pid_ = -1;
  Fd to_, from_, errors_;
  std::string outbox_;
  std::string before_greeting_;
  bool greeted_ = false;
  FrameParser parser_{kAgentFrameLimit};
  std::string error_text_;  // the end of what ssh said
};

}  // namespace kolo::launch
