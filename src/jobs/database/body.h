// What a JobDatabase is made of, for the rest of this module.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "kolo/jobs.h"
#include "store/database.h"
#include "store/raw.h"

namespace kolo::jobs {

using store::raw;

struct JobDatabase::Body {
  std::filesystem::path folder;
  std::string url;
  std::unique_ptr<store::Database> store;
  /// Dates the history.
  const Clock* clock = &system_clock();
  /// Leases are counted by the clock that all users of the database share: that of the server, or
  /// of this machine where the database is a file.
  const Clock* lease_clock = nullptr;
  std::unique_ptr<const Clock> server_clock;

  [[nodiscard]] double date() const { return clock->date(); }
  [[nodiscard]] double lease_date() const { return lease_clock->date(); }

  /// Wakes launchers. A notification that cannot be given is not an error: they look now and then.
  void notify() noexcept;
  /// Wakes those who wait for jobs to end.
  void notify_ends() noexcept;
};

struct Internals {
  using Body = JobDatabase::Body;
  static Body& of(JobDatabase& jobs) noexcept { return *jobs.body_; }
};
inline Internals::Body& body_of(JobDatabase& jobs) noexcept { return Internals::of(jobs); }

/// By one number of `counter`: 'job', 'launcher', 'queued_launch'. Inside a transaction.
std::int64_t count_up(store::Database& database, std::string_view counter, std::int64_t by = 1);

inline constexpr std::string_view kJobColumns =
    "j.id, j.name, j.workflow, j.application, j.state, j.created, j.retries, j.return_code, "
    "j.lease, s.spec, j.yields";
/// The columns after them begin here.
inline constexpr int kAfterJobColumns = 11;
/// A row with kJobColumns of jobs j and job_specs s.
Job read_job(const store::Statement& row);

/// What a job takes of each of its nodes.
int cores_per_node(const Job& job);

}  // namespace kolo::jobs
