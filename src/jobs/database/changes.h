// Changes of jobs' states: each a compare-and-set with its time and reason in the history.
//
// Steps that need nothing from outside between them (a job without a preprocess script is
// PREPROCESSED as soon as it is STAGED_IN) are one chain: one compare-and-set from the first state
// to the last, one line of history for each. An end reaches the children in the same transaction.
// Cost: one update for a chain, and one for each child of a job that ends.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kolo/jobs.h"
#include "store/database.h"

namespace kolo::jobs {

struct Step {
  JobState state = JobState::created;
  double time = 0;  ///< seconds since 1970
  std::string reason;
};

/// A launcher's right to a job. `attempt` grows each time a job is taken, so that the right is
/// gone for good when somebody else has it.
struct Hold {
  std::int64_t launcher = 0;
  std::int64_t attempt = 0;
};

/// Held jobs in other states are runnable, or need to be processed.
bool is_takeable(JobState state) noexcept;

/// One transaction.
class Changes {
 public:
  explicit Changes(store::Database& database, store::Locking locking = store::Locking::rows)
      : database_(database), transaction_(database, locking) {}

  struct Chain {
    JobId id{};
    JobState from = JobState::created;
    std::span<const Step> steps;  ///< at least one, or a hold that is given back
    std::optional<Hold> hold{};   ///< the change is a launcher's; it must still have the job
    bool release = false;         ///< the launcher gives the job back
    int retries = 0;              ///< used by this chain
    std::optional<int> return_code{};
  };
  /// False: the job is not in that state (any more), or not the launcher's.
  bool apply(const Chain& chain);

  void commit();
  /// Whether a job that had waited for its parents does so no more.
  [[nodiscard]] bool made_ready() const noexcept { return made_ready_; }

 private:
  bool write(const Chain& chain, std::int64_t& steps, std::int64_t& children);
  bool change(const Chain& chain);

  struct Ended {
    JobId job{};
    JobState state = JobState::created;
    double time = 0;
  };
  void tell_children(const Ended& parent);

  struct Line {
    JobId job{};
    std::int64_t seq = 0;
    Step step;
  };
  store::Database& database_;
  store::Transaction transaction_;
  std::vector<Line> lines_;
  std::vector<Ended> ended_;  // whose children are to be told
  bool made_ready_ = false;
};

}  // namespace kolo::jobs
