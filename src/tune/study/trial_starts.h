// Decides which trials start, and gives them their places.
#pragma once

#include "tune/study/study_state.h"
#include "tune/study/trial_ends.h"

namespace kolo::tune {

class TrialStarts {
 public:
  TrialStarts(StudyState& state, TrialEnds& ends) : state_(state), ends_(ends) {}

  /// Starts trials while there is room: those that wait, and new ones of the search.
  void fill();
  /// The search had no trial to give while nothing ran: it will never have one.
  [[nodiscard]] bool exhausted() const noexcept { return exhausted_; }
  /// A trial would start now if there were a place for it.
  [[nodiscard]] bool waits_for_place() const;

 private:
  bool start_one();
  /// Asks for all trials, where the scheduler wants to know them from the beginning.
  void create_population();
  [[nodiscard]] bool room_for_another() const;
  StudyTrial* create();
  void start(StudyTrial& trial, Grant place);
  [[nodiscard]] StartOrder order_for(StudyTrial& trial) const;
  [[nodiscard]] bool stuck() const;

  StudyState& state_;
  TrialEnds& ends_;
  bool exhausted_ = false;
};

}  // namespace kolo::tune
