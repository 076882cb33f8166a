// This process as a worker of an elastic job: its connection to the launcher, which outlives the
// groups (and Contexts) that the worker is in. One thread at a time. A thread of its own tells the
// launcher that the process is alive, whatever the program is at.
#pragma once

#include <chrono>
#include <memory>
#include <thread>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/secret.h"
#include "base/socket.h"
#include "comm/bootstrap.h"
#include "comm/elastic/member.h"
#include "comm/elastic/notice.h"
#include "comm/launchers.h"
#include "kolo/error.h"

namespace kolo::comm::elastic {

class Membership {
 public:
  /// That of this process, connected at the first call; null unless `kolo run` started it as a
  /// worker of an elastic job. Throws unavailable or timeout if the launcher cannot be reached.
  static Membership* of_this_process();
  /// The same for an environment that was read before. launched.worker is not negative.
  static Membership& of_this_process(const Launched& launched, Deadline deadline);

  Membership(const Launched& launched, Deadline deadline);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  /// Signals that mean notice; from then on they do not end this process.
  void heed_notice();

  /// How long operations of its groups wait. The launcher gives up nobody sooner who is waited for.
  void tell_timeout(std::chrono::milliseconds of_operations);

  /// At the end of a step: what this worker wants of the group. This and what follows throw
  /// unavailable if the connection to the launcher is broken, though that is there.
  Wish wish();
  /// This worker is in its group no longer. `blamed` is the rank that was lost, if one was.
  void leave_group(int blamed);
  /// Waits until the launcher, or a notice, says what comes after the last group. Never Next::wait.
  /// Throws timeout if the launcher says nothing for much longer than it should; while others are
  /// at work, or start, it says so.
  Next await_next();
  /// Enters the next group and returns what its ranks meet by. Leaves the last one if nobody has.
  /// However long that group is in coming, there is `patience` from then on to reach its meeting
  /// place. Throws cancelled if there is none for this worker.
  std::shared_ptr<Bootstrap> join(std::chrono::milliseconds patience);
  /// All ranks of the group are there.
  void met() noexcept;
  /// Whether the group has ended by this error, and the job goes on with the next one. One that has
  /// died ends a group, and so does one that does not come to its first meeting: that is seen as a
  /// timeout, because nobody can say that it is lost. Later a timeout that names a rank is that of
  /// an engine, of an operation that this rank does not submit. What a program throws itself, or
  /// what the launcher does not do, ends no group.
  [[nodiscard]] bool ends_group(const Error& error) noexcept;
  /// The work is done, for good.
  void finished();

  /// It has entered a group and has not left it, though it may not have met the others yet.
  [[nodiscard]] bool is_in_group() const noexcept { return in_group_; }
  [[nodiscard]] bool has_met() const noexcept { return has_met_; }
  /// False once the launcher is gone.
  [[nodiscard]] bool has_launcher() const noexcept { return socket_.valid(); }
  [[nodiscard]] Generation generation() const noexcept { return member_.generation(); }

 private:
  [[nodiscard]] Fd connect(Deadline deadline) const;
  void send(const FromWorker& message);
  /// Takes what has come, without waiting. Throws unavailable if the connection is broken.
  void receive();
  void lose_launcher();
  void tell_that_it_is_alive();

  int worker_;
  SocketAddress door_;
  Secret secret_;
  std::chrono::milliseconds patience_;
  Member member_;
  Fd socket_;  // invalid: the launcher is gone. Changed and written to under mutex_
  Deadline::Clock::time_point told_to_wait_{};
  FrameParser parser_{kMessageLimit};
  std::unique_ptr<Notice> notice_;
  bool in_group_ = false;
  bool has_met_ = false;       // the others of its group
  int failed_meetings_ = 0;    // in a row
  bool has_reported_ = false;  // to the launcher, as one that a group may take in

  Mutex mutex_;
  CondVar changed_;
  bool is_stopping_ KOLO_GUARDED_BY(mutex_) = false;
  std::thread pulse_;
};

}  // namespace kolo::comm::elastic
