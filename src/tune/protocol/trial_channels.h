// The sockets between a study and its trials: each trial inherits one, and its helpers connect to
// another.
//
// A trial that reports faster than the study answers is not read for a while, so that its own
// socket fills up and not the memory of the study. The same holds for all connections of a trial
// together.
//
// One thread at a time.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
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
  /// What all connections of a run have together.
  struct Run {
    RunId id;
    std::set<ChannelId> channels{};
    std::size_t bytes = 0;       // of lines that have no answer or are not whole yet
    std::size_t unanswered = 0;  // lines
    bool ends = false;           // it is heard to its end, however much that is
  };
  /// What the lines of a channel that have no answer cost, oldest first.
  using Questions = std::deque<std::size_t>;
  struct Channel {
    Fd socket;
    std::shared_ptr<Run> run;  // unknown until the hello of a connection
    std::string partial{};
    std::size_t counted = 0;  // of it, in run->bytes
    Questions questions{};
    bool rests = false;  // is not read
  };
  /// A channel whose other side has closed, while the study still works on its lines.
  struct Gone {
    std::shared_ptr<Run> run;
    Questions questions;
  };
  void watch(const Fd& fd, ChannelId number);
  void add(ChannelId number, Channel channel);
  void remove(ChannelId number);
  /// Decides which channels of a run are read.
  void settle(const Run& run);
  void set_reading(ChannelId number, Channel& channel, bool reads);
  static void count_question(Channel& channel, std::size_t bytes);
  static void count_answer(Run& run, Questions& questions);
  /// Whether there was a connection.
  bool accept_all();
  void pause_accepting();
  void resume_accepting();
  void drop_a_stranger();
  /// Connections of runs that had too many.
  void hear_waiting(const Take& take, const Refuse& refuse);
  /// Whether anything was read or accepted.
  bool read_round(const Take& take, const Refuse& refuse);
  /// False: the other side has closed.
  bool read(ChannelId number, Channel& channel, const Take& take, const Refuse& refuse);
  /// False: the other side is a stranger, or says too much. No line ends before `searched`.
  bool take_lines(ChannelId number, Channel& channel, std::size_t searched, const Take& take,
                  const Refuse& refuse);
  enum class Welcome { yes, later, no };
  /// The first line of a connection, which must say whose it is.
  Welcome welcome(ChannelId number, Channel& channel, const TrialLine& line);

  SocketDirectory directory_;
  std::filesystem::path path_;
  Fd epoll_, listener_, retry_;
  std::random_device random_;  // kept: making one takes longer than a token
  std::map<ChannelId, std::shared_ptr<Channel>> channels_;
  std::map<ChannelId, Gone> gone_;
  std::set<ChannelId> waiting_;  // strangers whose run has as many channels as it may have
  std::map<std::string, std::shared_ptr<Run>> tokens_;
  ChannelId next_ = 2;  // the first numbers are the listener and the timer
};

}  // namespace kolo::tune
