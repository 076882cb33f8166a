// A whole elastic job in memory, with the real decision code of launcher (Roster) and workers
// (Member), under a schedule that follows from its number alone.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "comm/elastic/member.h"
#include "kolo/random.h"
#include "launch/elastic/roster.h"

namespace kolo::test {

/// Defects that the simulation must find.
enum class RegroupDefect { none, plans_get_lost, deaths_are_not_told, the_stopped_seem_alive };

class RegroupSimulation {
 public:
  explicit RegroupSimulation(std::uint64_t number, RegroupDefect defect = RegroupDefect::none);

  /// Plays it to its end. Returns what went wrong, "" for nothing.
  std::string run();

 private:
  using Generation = comm::elastic::Generation;
  enum class Place { starting, waiting, working, gone };
  struct Process {
    comm::elastic::Member member;
    Place place = Place::starting;
    std::string host;
    bool is_heard = true;  // by the launcher; false: its host is cut off
    bool is_stopped = false;
    bool has_taken_leave = false;
    bool is_synced = false;  // it has the state of the job
    long commits = 0;
    long arrivals = 0;         // at meetings of its group: the sync first, then each commit
    std::set<int> known_lost;  // workers of its group that it was told to be gone
    std::deque<comm::elastic::FromLauncher> inbox;
    std::deque<comm::elastic::FromWorker> outbox;
  };
  struct Ended {
    int worker;
    int code;
  };

  void carry_out(const launch::elastic::Actions& actions);
  void form(const launch::elastic::FormGroup& group);
  bool happen();
  void misfortune();
  void stop(int worker);
  bool go_on_after_stop();
  void pass_time(launch::elastic::Time to);
  void work(int worker, Process& process);
  void meet(int worker, Process& process);
  void pass(int worker, Process& process);
  void leave(Process& process, int blamed);
  void between_groups(int worker, Process& process);
  void end(int worker, int code);
  void fail(const std::string& text) {
    if (wrong_.empty()) wrong_ = text;
  }

  Random random_;
  const RegroupDefect defect_;
  launch::elastic::Time now_{0};
  launch::elastic::Roster roster_;
  bool is_launcher_alive_ = true;
  int misfortunes_;
  std::map<int, Process> processes_;
  std::deque<Ended> ends_;
  std::map<Generation, std::vector<int>> groups_;
  std::string wrong_;
};

}  // namespace kolo::test
