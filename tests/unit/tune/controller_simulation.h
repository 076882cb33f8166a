// A study whose controller is killed, told to end and started again, and whose database fails,
// under a schedule that follows from its number alone. The controller, its journal, its replay and
// the tables are the real ones; clock, trials and what the database answers are simulated.
//
//   - the process dies at any write, before or after it has taken place;
//   - a write is refused, or takes place and its answer is lost; the disk is full or the server
//     away for a while;
//   - trials fail, are slow to save, and what old runs say comes late and twice;
//   - the clock is set.
//
// Whatever happens: a report after which a trial was told to go on is in the database, a trial that
// has ended is not started again and never runs twice at a time, and the study ends with all its
// trials and leaves no run behind.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "kolo/random.h"
#include "support/flaky_database.h"
#include "unit/tune/simulated_study.h"

namespace kolo::test {

class ControllerSimulation {
 public:
  /// Many may share a folder, which also holds their database. `database_lies`: a defect that the
  /// simulation must find.
  ControllerSimulation(std::uint64_t number, std::filesystem::path folder,
                       bool database_lies = false);

  /// Plays it to its end. Returns what went wrong, "" for nothing.
  std::string run();

 private:
  class WatchedExecutor;
  enum class Session { finished, interrupted, died };

  [[nodiscard]] tune::Options options() const;
  [[nodiscard]] Behaviour behaviour();
  Session session();
  void add_faults(Events& events, FlakyDatabase& database, std::atomic<bool>& interrupted);
  void look_at_what_is_stored();
  void check_end();
  void fail(const std::string& text) {
    if (wrong_.empty()) wrong_ = text;
  }

  const std::uint64_t number_;
  const std::filesystem::path folder_;
  const bool database_lies_;
  Random random_;
  GivenClock clock_;
  int misfortunes_;
  bool is_dead_ = false;  // the process of this session: what its destructors do does not happen
  int trials_, slots_;
  std::int64_t steps_;
  std::string scheduler_;
  Behaviour::Saves saves_;
  std::set<std::int64_t> over_;                              // trials whose end is stored
  std::map<std::int64_t, std::set<std::int64_t>> answered_;  // iterations, by trial
  std::string wrong_;
};

}  // namespace kolo::test
