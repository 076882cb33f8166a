// The rows of the tables of a study. The numbers of enumerations are stored, so they never change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kolo/tune/trial_status.h"

namespace kolo::store {

enum class StudyId : std::int64_t {};

using tune::TrialStatus;

enum class StudyStatus : std::int64_t { running = 0, finished = 1, stopped = 2, failed = 3 };

struct StudyRecord {
  StudyId id{};
  std::string name{};
  std::string first_name{};  ///< before it was renamed: the ids of its trials are made of it
  std::string directory{};
  std::string spec{};  ///< JSON: how it was started; what a resume needs
  StudyStatus status = StudyStatus::running;
  double created = 0;       ///< seconds since 1970, as all times here
  double elapsed = 0;       ///< seconds, all sessions together
  std::int64_t seq = 0;     ///< of the last entry in its journal
  std::int64_t logged = 0;  ///< files beside the database are known to be true up to here
};

/// Asks, reports, ends and events of a study have one common numbering, `seq`: the order in which
/// samplers and schedulers were told, which is what a resume repeats.
struct TrialRecord {
  std::int64_t number = 0;
  TrialStatus status = TrialStatus::pending;
  std::string point;   ///< what the sampler asked for; shortest decimals, "nan" = inactive
  std::string config;  ///< JSON, as it is now
  std::string directory{};
  std::int64_t asked_seq = 0;
  std::optional<std::int64_t> ended_seq;
  double created = 0;
  std::optional<double> started, ended;
  double seconds = 0;          ///< run so far, without pauses
  std::int64_t iteration = 0;  ///< of the last report
  std::int64_t failures = 0;
  std::string outcome;  ///< JSON: what the sampler was told at the end
  std::string error;    ///< of the last failure
  std::string why;      ///< it ended, in words
  std::string place;    ///< slots it runs or ran on: "2" or "0,1"
};

struct ReportRecord {
  std::int64_t seq = 0;
  std::int64_t trial = 0;
  std::int64_t iteration = 0;
  double time = 0;
  double seconds = 0;   ///< of running, up to here
  std::string metrics;  ///< JSON
  /// What was decided: a number of search::Action, and why in words; "" = nothing to say.
  std::int64_t action = 0;
  std::string reason;
  bool others_waited = false;  ///< as the scheduler was told
};

struct CheckpointRecord {
  std::int64_t trial = 0;
  std::int64_t seq = 0;
  std::int64_t iteration = 0;
  std::string path;
  double created = 0;
};

/// The row of the path is removed unless the path was named again, with a later number.
struct RemovedCheckpoint {
  std::string path;
  std::int64_t seq = 0;
};

/// Everything else: starts, pauses, clones, failures, messages; and what else the scheduler was
/// told ("stalled").
struct EventRecord {
  std::int64_t seq = 0;
  double time = 0;
  std::optional<std::int64_t> trial;
  std::string kind;
  std::string detail;
};

/// Somebody wants something of the controller of a study.
struct RequestRecord {
  std::int64_t number = 0;
  std::string kind;                   ///< "stop"
  std::optional<std::int64_t> trial;  ///< absent: the study
};

/// What one step of a controller changes: written together or not at all.
struct StudyBatch {
  std::int64_t from_seq = 0, to_seq = 0;
  double elapsed = 0;
  double now = 0;
  std::int64_t logged = 0;
  std::optional<StudyStatus> status;
  std::optional<std::string> spec;
  std::vector<TrialRecord> trials;  ///< new or changed
  std::vector<ReportRecord> reports;
  std::vector<CheckpointRecord> checkpoints;
  std::vector<RemovedCheckpoint> removed_checkpoints;
  std::vector<EventRecord> events;
  std::vector<std::int64_t> done_requests;

  [[nodiscard]] bool empty() const noexcept {
    return trials.empty() && reports.empty() && checkpoints.empty() &&
           removed_checkpoints.empty() && events.empty() && done_requests.empty() && !status &&
           !spec;
  }
};

}  // namespace kolo::store
