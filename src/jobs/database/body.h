// What a JobDatabase is made of, for the rest of this room.
#pragma once

#include <memory>
#include <string>

#include "kolo/jobs.h"
#include "store/database.h"
#include "store/raw.h"

namespace kolo::jobs {

using store::raw;

struct JobDatabase::Body {
  std::filesystem::path folder;
  std::string url;
  std::unique_ptr<store::Database> store;

  /// Wakes launchers. A notification that cannot be given is not an error: they look now and then.
  void notify() noexcept;
  /// Wakes those who wait for jobs to end.
  void notify_ends() noexcept;
  /// Seconds since 1970 by the clock that all users of the database share.
  double shared_now();
};

/// Seconds since 1970 by this machine's clock.
double clock_now();

/// By one number of `counter`: 'job', 'launcher', 'queued_launch'. Inside a transaction.
std::int64_t count_up(store::Database& database, std::string_view counter, std::int64_t by = 1);

inline constexpr std::string_view kJobColumns =
    "j.id, j.name, j.workflow, j.application, j.state, j.created, j.retries, j.return_code, "
    "j.lease, s.spec";
/// A row with kJobColumns of jobs j and job_specs s.
Job read_job(const store::Statement& row);

/// What a job takes of each of its nodes.
int cores_per_node(const Job& job);

}  // namespace kolo::jobs
