// A Messenger and what a group needs around it: deadlines, the news of ranks that died, and errors
// that name the rank which was lost rather than the one that happened to be waited for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/mutex.h"
#include "comm/liveness.h"
#include "comm/wire/messenger.h"
#include "comm/wire/wire.h"
#include "kolo/error.h"

namespace kolo::comm {

class WireLink {
 public:
  /// Member i is world rank options.world_ranks[i].
  WireLink(std::unique_ptr<Messenger> messenger, int me, const WireOptions& options);
  ~WireLink();
  WireLink(const WireLink&) = delete;
  WireLink& operator=(const WireLink&) = delete;

  [[nodiscard]] Messenger& messenger() noexcept { return *messenger_; }
  [[nodiscard]] int me() const noexcept { return me_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(options_.world_ranks.size()); }
  [[nodiscard]] const WireOptions& options() const noexcept { return options_; }
  [[nodiscard]] Deadline deadline() const { return Deadline::after(wait_limit(options_.timeout)); }

  /// Runs `action`. A peer_lost from inside ends the link: the members tell each other whom they
  /// have given up, and it becomes one that names the rank which is to blame. From then on every
  /// call throws that.
  template <class Action>
  void guarded(std::string_view operation, Action&& action) {
    throw_if_broken(operation);
    try {
      action();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::peer_lost) throw;
      settle(error);
      throw_if_broken(operation);
      throw;
    }
  }
  void throw_if_broken(std::string_view operation) const;
  /// A member of which is known that it is gone.
  [[nodiscard]] std::optional<int> lost_member() const;
  [[nodiscard]] bool is_broken() const noexcept { return loss_.has_value(); }

 private:
  struct Loss {
    int member;
    std::string reason;
  };
  /// What the watching thread is told. Shared with the listener, which may still be running when
  /// the link goes.
  struct Watch {
    Mutex mutex;
    CondVar changed;
    std::optional<Loss> unclean KOLO_GUARDED_BY(mutex);  // the first
    bool is_closing KOLO_GUARDED_BY(mutex) = false;
    std::thread grace;  // started under mutex, joined when closing
  };

  /// Finds out who was lost; the first answer stays.
  void settle(const Error& error);
  [[nodiscard]] int first_death(int given_up) const;
  [[nodiscard]] std::optional<std::string> reason_of_departure(int member);
  void on_departure(Watch& watch, const Departure& departure);
  [[nodiscard]] int member_of(int world_rank) const noexcept;

  std::unique_ptr<Messenger> messenger_;
  const int me_;
  const WireOptions options_;
  std::optional<Loss> loss_;
  std::shared_ptr<Watch> watch_;
  int listener_ = -1;
};

}  // namespace kolo::comm
