// A study whose controller is killed, told to end and started again, and whose database fails,
// under a schedule that follows from its number alone. The controller, its journal, its replay and
// the tables are the real ones; clock, trials and what the database answers are simulated.
//
//   - the process dies at any write, before or after it has taken place;
//   - a write is refused, or takes place and its answer is lost; the disk is full or the server
//     away for a while;
//   - trials fail, are slow to save, and what old runs say comes late and twice;
//   - the clock is set;
//   - the power fails at any write, flush or renaming of a file, and what was not flushed is lost,
//     in part or as a whole (support/simulated_disk.h).
//
// Whatever happens: a report after which a trial was told to go on is in the database, a trial that
// has ended is not started again and never runs twice at a time, a checkpoint that the database
// names is there with what was saved, and the study ends with all its trials and leaves no run
// behind. Where the database is not flushed at each commit, a power failure may take the last
// commits, and nothing else.
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

class SimulatedDisk;

class ControllerSimulation {
 public:
  enum class Faults {
    processes,      ///< and databases, disks and clocks, as above, but the power stays
    database_lies,  ///< a defect that the simulation must find
    disk_lies,      ///< another one; the power fails
    power,          ///< fails as well; the database flushes each commit
    power_normal,   ///< fails as well, and the database has its usual setting
  };

  /// Many may share a folder, which also holds their database, unless the power fails.
  ControllerSimulation(std::uint64_t number, std::filesystem::path folder,
                       Faults faults = Faults::processes);
  ~ControllerSimulation();

  /// Plays it to its end. Returns what went wrong, "" for nothing.
  std::string run();

 private:
  class WatchedExecutor;
  enum class Session { finished, interrupted, died };

  void play();
  [[nodiscard]] tune::Options options() const;
  [[nodiscard]] Behaviour behaviour();
  Session session();
  void add_faults(Events& events, FlakyDatabase& database, std::atomic<bool>& interrupted);
  void restore_power();
  [[nodiscard]] bool has_no_power() const;
  [[nodiscard]] std::string storage() const;
  void look_at_what_is_stored();
  void check_end();
  void fail(const std::string& text) {
    if (wrong_.empty()) wrong_ = text;
  }

  const std::uint64_t number_;
  const std::filesystem::path folder_;
  const Faults faults_;
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
  std::unique_ptr<SimulatedDisk> disk_;                      // null where the power does not fail
  std::string wrong_;
};

}  // namespace kolo::test
