// The one who starts, watches and ends the ranks of one host.
//
// It runs as a child of the launcher (its own host) or as `kolo agent` under ssh, and is told what
// to do over a pair of pipes. When the launcher's end of them closes, for whatever reason, all
// ranks are ended: no rank outlives its launcher. Every process below a rank is found again, also
// one that has left its process group, because the agent adopts orphans; and if the agent itself is
// killed, the kernel kills the ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "launch/agent_protocol.h"

namespace kolo::launch {

class Agent {
 public:
  /// Talks over these descriptors; they become non-blocking.
  Agent(Fd in, Fd out);

  /// Until the job has ended and nothing of it is left here. The process's exit status.
  int run();

 private:
  struct Rank {
    int number = 0;
    pid_t pid = -1;
    Fd out, err;
    bool exited = false;
  };
  enum class Phase { waiting, running, terminating, killing };

  void say_hello();
  void read_commands();
  void handle(const Frame& command);
  void start(const StartJob& job);
  void start_ranks(const StartJob& job);
  void read_output(Rank& rank, Stream stream);
  void reap();
  void note_exit(pid_t pid, int status);
  void terminate();
  void kill_all();
  [[nodiscard]] bool finished();
  void drain();

  void send(std::string_view bytes);
  void flush();
  void flush_to_the_end();
  [[nodiscard]] int poll_timeout_ms() const;

  Fd in_, out_, signals_, secret_;
  bool out_broken_ = false;
  FrameParser parser_{kAgentFrameLimit};
  std::string outbox_;
  Phase phase_ = Phase::waiting;
  std::optional<Deadline> next_step_;  // of ending the ranks
  std::chrono::milliseconds grace_{5000};
  int kill_attempts_ = 0;
  std::vector<Rank> ranks_;
};

}  // namespace kolo::launch
