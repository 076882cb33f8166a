// Notice that this process is to go: SIGTERM, and the signal that a batch system sends in advance.
#pragma once

#include <signal.h>

#include <utility>
#include <vector>

#include "base/fd.h"

namespace kolo::comm::elastic {

/// While it lives, these signals do not end this process but are remembered; its forks they end as
/// ever. One at a time in a process.
class Notice {
 public:
  explicit Notice(const std::vector<int>& signals);
  ~Notice();
  Notice(const Notice&) = delete;
  Notice& operator=(const Notice&) = delete;

  [[nodiscard]] bool given() const noexcept;
  /// Readable from then on.
  [[nodiscard]] int fd() const noexcept { return event_.get(); }

 private:
  Fd event_;
  std::vector<std::pair<int, struct sigaction>> before_;  // what the signals did
};

}  // namespace kolo::comm::elastic
