// The inside of an elastic State.
#pragma once

#include "kolo/elastic.h"

namespace kolo::elastic {

struct State::Contents {
  std::vector<std::unique_ptr<Part>> parts;
  std::vector<std::function<void()>> callbacks;
  std::function<void()> before_commit, at_end_of_step;  ///< inside run()
  /// Inside run(), on one rank, when nobody has the state: takes what is on disk, if it is to.
  /// Returns whether it has.
  std::function<bool()> at_beginning;
  /// Inside run(), where there is no copy to go back to: leaves the group to be given the state
  /// again. Does not return.
  std::function<void()> ask_again;
  std::uint64_t commits = 0;
  bool counts_told = false;  ///< comm::elastic::told_count() is a part
  bool is_synced = false;    ///< it is the state of the job, not one that this rank began with
  bool has_copy = true;      ///< to go back to; false in the first step of a rank that has joined
};

}  // namespace kolo::elastic
