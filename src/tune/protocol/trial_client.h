// The trial's side of the protocol: a session over a socket.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "tune/executor/executor.h"
#include "tune/protocol/trial_protocol.h"

namespace kolo::tune {

/// The connection of a trial to its study. It waits for answers without a limit, because the study
/// may wait for its database, and fails when the study ends. Where it is a file, nobody answers,
/// and the trial goes on until it is killed.
class TrialLink {
 public:
  explicit TrialLink(Fd socket, bool is_file = false)
      : socket_(std::move(socket)), is_file_(is_file) {}
  /// By KOLO_TRIAL_REPORTS, else by KOLO_TRIAL_SOCKET and KOLO_TRIAL_TOKEN, else by KOLO_TRIAL_FD.
  /// Throws failed_precondition outside of a trial, unavailable when the study is gone.
  static TrialLink from_environment(bool own_connection);

  /// Throws unavailable when the study is gone.
  void send(std::string_view line);
  Answer wait_for_answer();
  /// Reads what has come, without waiting; true once the study has said stop.
  bool told_to_stop();

 private:
  void take(std::string_view line);
  /// False: nothing has come.
  bool read(bool wait);

  Fd socket_;
  bool is_file_;
  std::string partial_;
  std::optional<Answer> answer_;
  bool stop_ = false;
};

/// The descriptor of KOLO_TRIAL_FD, if it is open in this process.
std::optional<int> inherited_trial_fd();

/// The session of this process, which was started as a trial. There is one for all threads: two
/// would take each other's answers.
SessionBase& client_session();

}  // namespace kolo::tune
