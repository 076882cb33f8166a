// Brings a study back to where an earlier session left it.
//
// Sampler, scheduler and stoppers have no state in the database. They are told the journal again,
// in the same order, and so come to the same state. Then every trial that was cut off gets what its
// last report had led to, and files that may lack something are written anew.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "tune/study/study_state.h"
#include "tune/study/trial_ends.h"

namespace kolo::tune {

class Replay {
 public:
  Replay(StudyState& state, TrialEnds& ends) : state_(state), ends_(ends) {}

  /// Returns how many reports the journal has. Throws corruption.
  std::int64_t run();

 private:
  void load_trials();
  void tell_journal();
  void tell_until(std::int64_t seq);
  void tell_ask(const store::TrialRecord& record);
  void tell_end(const store::TrialRecord& record);
  void tell_report(store::ReportRecord& report);
  void note_rulings();
  void settle(StudyTrial& trial);
  void rewrite_files(StudyTrial& trial);
  void rewrite_files_of_ended();

  StudyState& state_;
  TrialEnds& ends_;
  std::int64_t reports_ = 0;

  // The journal besides reports, each in the order of its sequence numbers.
  std::vector<const StudyTrial*> ends_in_order_;
  std::vector<std::int64_t> stalls_;
  std::int64_t next_ask_ = 0;  // number of a trial
  std::size_t next_end_ = 0, next_stall_ = 0;

  std::map<std::int64_t, std::int64_t> last_clone_;  // trial -> sequence number
  std::set<std::int64_t> cloned_since_report_;       // trials
  /// By trial: what was decided about it while it waited, since its last report.
  std::map<std::int64_t, Ruling> rulings_;
  std::set<std::int64_t> stale_files_;  // trials whose files may lack something
};

}  // namespace kolo::tune
