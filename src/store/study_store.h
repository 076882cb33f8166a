// Studies in a database: who controls one, what happened in it, and in which order.
//
// A study has one controller at a time. It claims the study, writes batches, and lets go; a
// controller whose process is gone, or whose host has been silent, is replaced by the next claim.
// A batch is refused when the study is not the writer's any more.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kolo/error.h"
#include "store/database.h"
#include "store/study_records.h"

namespace kolo::store {

/// A controller that has not been heard of for so long on another host counts as gone.
inline constexpr double kLeaseSeconds = 15;

/// What is cheap to know about a study; it differs whenever something in its history is new.
struct StudyMark {
  std::string name;
  std::int64_t seq = 0;
  StudyStatus status = StudyStatus::running;
  bool held = false;  ///< somebody has claimed it, and may be gone
  bool operator==(const StudyMark&) const = default;
};

/// Trials by their numbers: from `first` up to, but not including, `end`.
struct TrialRange {
  std::int64_t first = 0;
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
};

/// Who holds a study, as others see it.
struct Holder {
  std::string host;
  std::int64_t pid = 0;
  double heard = 0;  ///< when
};

class StudyStore {
 public:
  /// Makes or migrates the tables. The database must outlive this.
  explicit StudyStore(Database& database);

  [[nodiscard]] Database& database() noexcept { return database_; }

  /// Throws already_exists.
  StudyId create(const StudyRecord& study);
  [[nodiscard]] std::vector<StudyRecord> studies();
  /// Of all studies, by name: for those who look often.
  [[nodiscard]] std::vector<StudyMark> marks();
  [[nodiscard]] std::optional<StudyRecord> find(std::string_view name);
  /// Throws not_found, suggesting a near name.
  [[nodiscard]] StudyRecord at(std::string_view name);

  /// The date by which leases are judged, for claim(), holder() and batches: of the server if there
  /// is one, since the clocks of hosts may differ. It goes on evenly when a clock is set anew, and
  /// is read again now and then.
  [[nodiscard]] double lease_date();
  /// Makes this object the study's controller; nothing else of the study changes. Throws
  /// failed_precondition, naming who is.
  void claim(StudyId study, double now);
  /// A controller on another host, however long it has been silent.
  [[nodiscard]] std::optional<Holder> holder_elsewhere(StudyId study);
  void release(StudyId study) noexcept;
  // For who has claimed the study.
  /// Removes it with everything that belongs to it.
  void remove(StudyId study);
  /// Gives it another name and folder; paths in the old folder become paths in the new one. Throws
  /// already_exists.
  void rename(StudyId study, const std::string& name, const std::string& directory);
  /// A second study with the same history. Throws already_exists.
  StudyId copy(StudyId study, const std::string& name, const std::string& directory);

  /// None: nobody, or one who is gone.
  [[nodiscard]] std::optional<Holder> holder(StudyId study, double now);

  /// After a return it is committed. May be repeated after an error of which it is not known
  /// whether it was. Throws failed_precondition if the study is not ours any more.
  void write(StudyId study, const StudyBatch& batch);

  [[nodiscard]] std::int64_t trial_count(StudyId study);
  /// How many trials had ended before this seq.
  [[nodiscard]] std::int64_t ended_before(StudyId study, std::int64_t seq);
  /// Ascending by number.
  [[nodiscard]] std::vector<TrialRecord> trials(StudyId study, TrialRange range = {});
  void each_report(StudyId study, const std::function<void(ReportRecord&)>& take);  ///< by seq
  [[nodiscard]] std::vector<ReportRecord> reports_of(StudyId study, std::int64_t trial);
  /// Of each trial, ascending by its number.
  [[nodiscard]] std::vector<ReportRecord> last_reports(StudyId study, TrialRange range = {});
  /// Those of these trials with a greater seq than `after`, by seq.
  [[nodiscard]] std::vector<ReportRecord> reports_after(StudyId study, TrialRange range,
                                                        std::int64_t after);
  [[nodiscard]] std::vector<CheckpointRecord> checkpoints(StudyId study);  ///< by seq
  [[nodiscard]] std::vector<CheckpointRecord> checkpoints_of(StudyId study, std::int64_t trial);
  /// By seq; those with a greater one than `after`.
  [[nodiscard]] std::vector<EventRecord> events(StudyId study, std::int64_t after = 0);
  [[nodiscard]] std::vector<EventRecord> events_of(StudyId study, std::int64_t trial);

  /// For the controller, which is notified.
  void request(StudyId study, std::string_view kind, std::optional<std::int64_t> trial);
  [[nodiscard]] std::vector<RequestRecord> requests(StudyId study);
  /// Wakes when there are new requests for any study.
  std::unique_ptr<Watch> watch_requests();

 private:
  StudyId insert(const StudyRecord& study);
  /// Throws the error of a write again, in words about studies where the name was there already.
  [[noreturn]] void throw_if_taken(const Error& error, const std::string& name) const;
  [[nodiscard]] StudyRecord at(StudyId study);
  void write_trials(std::int64_t study, const StudyBatch& batch);
  void write_reports(std::int64_t study, const StudyBatch& batch);
  void write_rest(std::int64_t study, const StudyBatch& batch);

  Database& database_;
  std::optional<std::pair<std::chrono::steady_clock::time_point, double>> date_;  // read when: what
  std::string owner_;  // of this object, in words that no other has
};

}  // namespace kolo::store
