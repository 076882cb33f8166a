// Jobs in a database: applications, jobs with their dependencies, and what became of them.
//
//   auto jobs = kolo::jobs::JobDatabase::open("testdb");
//   jobs.set_application({.name = "AMBS", .executable = "kolo hps ambs"});
//   kolo::jobs::Job job;
//   job.name = "test", job.workflow = "TEST", job.application = "AMBS";
//   auto id = jobs.create(job);
//
// `kolo launcher` runs them. The folder of a database holds the database itself (or where its
// server is), data/WORKFLOW/NAME_ID for each job, log/ and qsubmit/.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::jobs {

enum class JobId : std::int64_t {};

/// The state of a job, with Balsam's names. The numbers are stored and never change.
enum class JobState : std::int64_t {
  created = 0,
  awaiting_parents = 1,
  ready = 2,
  staged_in = 3,
  preprocessed = 4,
  running = 5,
  run_done = 6,
  postprocessed = 7,
  job_finished = 8,
  run_timeout = 9,
  run_error = 10,
  restart_ready = 11,
  failed = 12,
  user_killed = 13,
};

/// "JOB_FINISHED".
std::string_view to_string(JobState state) noexcept;
/// In any case of letters. Throws invalid_argument, listing the known ones.
JobState parse_state(std::string_view name);
/// JOB_FINISHED, FAILED or USER_KILLED.
bool is_end(JobState state) noexcept;
/// Whether a job may go from one state to the other.
bool is_legal(JobState from, JobState to) noexcept;

/// A program that jobs run. Command lines are split into words as a shell does with quotes and
/// backslashes, and nothing else is interpreted.
struct Application {
  std::string name;
  std::string executable;
  std::string preprocess{};   ///< command before the run, in the job's folder
  std::string postprocess{};  ///< command after it
  std::string envscript{};    ///< file for bash to source before the executable
  std::string description{};
};

struct Job {
  JobId id{};
  std::string name{};
  std::string workflow = "default";
  std::string description{};
  std::string application{};
  std::string args{};  ///< words after the executable
  int num_nodes = 1;
  int ranks_per_node = 1;
  int threads_per_rank = 1;
  int threads_per_core = 1;
  double gpus_per_rank = 0;
  int node_packing_count = 1;          ///< how many such jobs may share a node
  std::string cpu_affinity = "none";   ///< none, or depth: bound to the cores it is given
  int coschedule_num_nodes = 0;        ///< kept, as Balsam does; nothing reads it
  int wall_time_minutes = 1;           ///< expected; the longest start first
  std::vector<std::string> environ{};  ///< NAME=VALUE
  std::string mpi_flags{};             ///< further words for mpirun, srun …
  std::vector<JobId> parents{};
  bool wait_for_parents = true;
  std::string input_files = "*";  ///< of parents, linked into the job's folder; globs
  std::string stage_in_url{}, stage_out_url{};
  std::string stage_out_files{};  ///< globs
  std::string user_workdir{};     ///< instead of data/WORKFLOW/NAME_ID
  bool auto_timeout_retry = true;
  bool post_error_handler = false, post_timeout_handler = false;
  double time_limit_seconds = 0;  ///< of one run; 0 = none
  int max_retries = 0;            ///< how often it runs again after an error
  std::string data = "{}";        ///< JSON for your own use

  // Kept by kolo.
  JobState state = JobState::created;
  double created = 0;                ///< seconds since 1970
  int retries = 0;                   ///< used so far
  std::optional<int> return_code{};  ///< of the last run
  std::int64_t launcher = 0;         ///< that holds it; 0 = none
  bool yields = false;  ///< waits for jobs that it adds; see JobDatabase::yield_place()
};

struct HistoryEntry {
  JobState state = JobState::created;
  double time = 0;
  std::string reason;
};

/// What ls, rm and kill select by. Empty fields select everything; all given ones must match.
struct JobFilter {
  std::vector<JobId> ids{};
  std::optional<JobState> state{};
  std::string workflow{};  ///< its name, or a pattern of shells: "TEST*"
  std::string name{};      ///< its name, or a pattern
  std::int64_t limit = -1;
  /// By number, from the last one down; else from the first one up.
  bool newest_first = false;
};

struct StateCount {
  std::string workflow;
  JobState state = JobState::created;
  std::int64_t jobs = 0;
};

/// A connection to a database of jobs. One thread at a time. Methods throw kolo::Error: not_found,
/// already_exists, invalid_argument, unavailable (the database does not answer; what was asked
/// is then done wholly or not at all).
class JobDatabase {
 public:
  /// Makes the folder and the tables. `url` is a PostgreSQL server's; empty: SQLite in the folder.
  /// Throws already_exists.
  static JobDatabase init(const std::filesystem::path& folder, const std::string& url = {});
  /// `patience` is how long each call waits for a busy database before it throws unavailable.
  /// Throws not_found, and failed_precondition if it is of a newer kolo.
  static JobDatabase open(const std::filesystem::path& folder,
                          std::chrono::milliseconds patience = std::chrono::seconds(20));

  JobDatabase(JobDatabase&&) noexcept;
  JobDatabase& operator=(JobDatabase&&) noexcept;
  ~JobDatabase();

  [[nodiscard]] const std::filesystem::path& folder() const noexcept;

  /// Adds an application, or replaces the one of that name.
  void set_application(const Application& application);
  [[nodiscard]] std::vector<Application> applications();
  /// Throws not_found, suggesting a near name.
  [[nodiscard]] Application application(std::string_view name);
  /// Throws failed_precondition while jobs that have not ended use it.
  void remove_application(std::string_view name);

  /// All or none. Parents must exist, applications too.
  std::vector<JobId> create(const std::vector<Job>& jobs);
  JobId create(const Job& job);

  /// Throws not_found.
  [[nodiscard]] Job job(JobId id);
  [[nodiscard]] std::vector<Job> find(const JobFilter& filter);
  [[nodiscard]] std::vector<StateCount> count_by_state(std::string_view workflow = {});
  [[nodiscard]] std::vector<HistoryEntry> history(JobId id);
  [[nodiscard]] std::vector<JobId> parents(JobId id);
  [[nodiscard]] std::vector<JobId> children(JobId id);

  /// Throws invalid_argument for a cycle, failed_precondition if the child has begun.
  void add_dependency(JobId parent, JobId child);
  /// Ends the jobs that have not ended; launchers end running ones. `reason` is for their history.
  /// Returns how many were ended.
  std::int64_t kill(const std::vector<JobId>& ids, bool recursive,
                    const std::string& reason = "killed by the user");
  /// Runs jobs that failed or were killed again, and with them the jobs that failed only because
  /// they waited for these. Returns how many. Throws failed_precondition for a job that is in
  /// another state, or that waits for one that has failed and is not among them.
  std::int64_t retry(const std::vector<JobId>& ids);
  /// For a job that runs, adds jobs and waits for them, as a search does: from now on launchers
  /// give its place to others, unless it shares a node by its node_packing_count anyway.
  void yield_place(JobId id);
  /// Removes jobs with their histories and dependencies; folders stay. Throws failed_precondition
  /// for jobs that a launcher holds.
  std::int64_t remove(const std::vector<JobId>& ids);
  /// Sets one field by its name; "state" moves the job along a legal transition. An ended job that
  /// is set to RESTART_READY is retried.
  void modify(JobId id, std::string_view field, const std::string& value);

  /// data/WORKFLOW/NAME_ID, or the job's user_workdir.
  [[nodiscard]] std::filesystem::path folder_of(const Job& job) const;

 private:
  struct Body;
  friend struct Internals;
  explicit JobDatabase(std::unique_ptr<Body> body);
  static void make_in(const std::filesystem::path& folder, const std::string& url);
  std::unique_ptr<Body> body_;
};

}  // namespace kolo::jobs
