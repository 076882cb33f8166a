// The sockets between a study and its trials: each trial inherits one, and its helpers connect to
// another.
//
// A trial that reports faster than the study answers is not read for a while, so that its own
// socket fills up and not the memory of the study.
//
// One thread at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "base/fd.h"
#include "tune/executor/executor.h"
#include "tune/protocol/socket_directory.h"
#include "tune/protocol/trial_protocol.h"

namespace kolo::tune {

/// Where an answer goes: the channel that asked.
using ChannelId = std::uint64_t;

class TrialChannels {
 public:
  /// Called with each line and the run that sent it.
  using Take = std::function<void(ChannelId channel, RunId id, TrialLine line)>;
  /// Called when a line cannot be understood.
  using Refuse = std::function<void(RunId id, const std::string& why)>;

  TrialChannels();
  ~TrialChannels();
  TrialChannels(const TrialChannels&) = delete;
  TrialChannels& operator=(const TrialChannels&) = delete;

  /// To poll; readable when there is something to do.
  [[nodiscard]] int poll_fd() const noexcept { return epoll_.get(); }
  [[nodiscard]] const std::filesystem::path& socket_path() const noexcept { return path_; }

  /// The trial's end of a new pair, and the token for the socket.
  struct Opened {
    Fd trial_end;
    std::string token;
    ChannelId channel;
  };
  Opened open(RunId id);
  /// Reads what has come for the trial by now, then closes its channels.
  void close(RunId id, const Take& take, const Refuse& refuse);

  /// Reads a part of what has come; poll_fd() stays readable as long as there is more. A trial that
  /// never stops sending does not keep the caller.
  void read_ready(const Take& take, const Refuse& refuse) { read_round(take, refuse); }
  /// What does not fit into the socket is dropped, because nobody reads it.
  void send(ChannelId channel, std::string_view line);
  /// The answer to the first line of the channel that has none. Every report and
  /// every checkpoint needs one.
  void answer(ChannelId channel, std::string_view line);

 private:
  struct Channel {
    Fd socket;
    std::optional<RunId> id;  // unknown until the hello of a connection
    std::string partial;
    int unanswered = 0;
    bool rests = false;    // is not read
    bool may_rest = true;  // until its run has ended
  };
  void watch(const Fd& fd, ChannelId number);
  void add(ChannelId number, Channel channel);
  void count_question(Channel& channel);
  void wake(ChannelId number, Channel& channel);
  /// Whether there was a connection.
  bool accept_all();
  void pause_accepting();
  void resume_accepting();
  void drop_a_stranger();
  /// Whether anything was read or accepted.
  bool read_round(const Take& take, const Refuse& refuse);
  /// False: the other side has closed.
  bool read(ChannelId number, Channel& channel, const Take& take, const Refuse& refuse);

  SocketDirectory directory_;
  std::filesystem::path path_;
  Fd epoll_, listener_, retry_;
  std::random_device random_;  // kept: making one takes longer than a token
  std::map<ChannelId, std::shared_ptr<Channel>> channels_;
  std::map<std::string, RunId> tokens_;
  ChannelId next_ = 2;  // the first numbers are the listener and the timer
};

}  // namespace kolo::tune
