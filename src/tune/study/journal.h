// The journal of a study: everything that happens gets the next sequence number, is gathered during
// a step, and is written to the database in one transaction at its end.
//
// A resumed study reads the same numbers back, in the same order (replay.h).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "store/study_store.h"
#include "tune/trial/trials.h"

namespace kolo::tune {

class Journal {
 public:
  /// The store and the clock must outlive the journal.
  Journal(store::StudyStore& store, store::StudyRecord study, const Clock& clock);

  [[nodiscard]] const store::StudyRecord& study() const noexcept { return study_; }
  [[nodiscard]] store::StudyStore& store() noexcept { return store_; }
  /// Nothing has happened in this study yet.
  [[nodiscard]] bool fresh() const noexcept { return seq_ == 0; }
  [[nodiscard]] std::int64_t seq() const noexcept { return seq_; }
  std::int64_t next_seq() noexcept { return ++seq_; }
  /// Seconds that the study has run, all sessions together.
  [[nodiscard]] double elapsed() const;

  void event(std::string kind, std::optional<std::int64_t> trial, std::string detail);
  /// The caller fills in what the report says.
  store::ReportRecord& report(std::int64_t trial);
  /// Returns its sequence number.
  std::int64_t checkpoint(std::int64_t trial, std::int64_t iteration,
                          const std::filesystem::path& path);
  void checkpoint_removed(const Checkpoint& checkpoint);
  void request_done(std::int64_t number);
  /// The description of the study from the next commit on.
  void set_spec(const std::string& spec) { batch_.spec = study_.spec = spec; }
  /// The status of the study from the next commit on.
  void set_study_status(store::StudyStatus status) { batch_.status = status; }
  /// The files of the trials hold everything up to the last commit.
  void files_complete() noexcept { logged_ = study_.seq; }
  [[nodiscard]] std::int64_t logged() const noexcept { return logged_; }

  /// Writes what was gathered and the trials that have changed, by `write`, which may repeat its
  /// call. Without news it writes only when the study has been silent for too long.
  void commit(Trials& trials, const std::function<void(const std::function<void()>&)>& write);
  /// What was committed survives a power failure when this returns.
  void flush() { store_.database().flush(); }
  /// When the next sign of life is due.
  [[nodiscard]] Clock::Time next_heartbeat() const noexcept;

 private:
  store::StudyStore& store_;
  const Clock& clock_;
  store::StudyRecord study_;
  store::StudyBatch batch_;
  std::int64_t seq_ = 0;
  std::int64_t logged_ = 0;
  double elapsed_before_ = 0;
  Clock::Time began_ = clock_.now();
  Clock::Time last_write_ = began_;
};

}  // namespace kolo::tune
