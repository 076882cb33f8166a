// take() looks without a lock first, since most looks find nothing. Its transaction begins with
// keep(), which updates the launcher's own row: it fails if the launcher was declared lost. Each
// job taken gets a new attempt number, and later writes must name it, so that a late write of an
// earlier attempt changes nothing. On PostgreSQL, rows that another launcher has locked are skipped
// instead of waited for. write() accepts a chain that was written already, because the answer to a
// commit may get lost and the write is then repeated. free_lost() marks a launcher only if its row
// is still as it was seen, so one launcher alone frees its jobs.
#include "jobs/database/leases.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/errors.h"
#include "base/files.h"
#include "base/host.h"
#include "base/json.h"
#include "jobs/database/body.h"
#include "jobs/database/name_pattern.h"

namespace kolo::jobs {
namespace {

using store::Locking;
using store::Transaction;

/// Frees the jobs of one launcher: what ran starts again, the rest stays where it is.
std::int64_t free_jobs(store::Database& database, Changes& changes, std::int64_t launcher,
                       const std::string& why, double date) {
  struct Row {
    JobId id;
    JobState state;
    std::int64_t attempt;
  };
  std::vector<Row> rows;
  auto& row = database.prepare("SELECT id, state, attempt FROM jobs WHERE lease = $1 ORDER BY id");
  row.bind(1, launcher);
  while (row.next())
    rows.push_back({JobId{row.integer(0)}, static_cast<JobState>(row.integer(1)), row.integer(2)});
  for (const auto& job : rows) {
    std::vector<Step> steps;
    if (job.state == JobState::running) steps.push_back({JobState::restart_ready, date, why});
    changes.apply({.id = job.id,
                   .from = job.state,
                   .steps = steps,
                   .hold = Hold{launcher, job.attempt},
                   .release = true});
  }
  return static_cast<std::int64_t>(rows.size());
}

double grace_of(const LauncherRecord& launcher) {
  constexpr double kDefault = 10;
  const Json about = try_parse_json(launcher.about).value_or(Json());
  const auto grace = about.is_object() ? about.find("grace_seconds") : about.end();
  return grace != about.end() && grace->is_number() ? grace->get<double>() : kDefault;
}

/// Its process was here and is not any more.
bool is_gone_here(const LauncherRecord& launcher) {
  const Json about = try_parse_json(launcher.about).value_or(Json());
  const std::string here = process_space();
  if (here.empty() || !about.is_object() || about.value("processes", Json()) != here) return false;
  return ::kill(static_cast<pid_t>(launcher.pid), 0) != 0 && errno == ESRCH;
}

}  // namespace

std::string process_space() {
  std::error_code none;
  std::string boot;
  try {
    boot = read_file("/proc/sys/kernel/random/boot_id");
  } catch (const Error&) {
    return "";  // nothing is known, and nobody is taken for gone
  }
  return boot.substr(0, boot.find('\n')) + " " +
         std::filesystem::read_symlink("/proc/self/ns/pid", none).string();
}

std::vector<LauncherRecord> launchers(JobDatabase& jobs, bool alive_only) {
  std::vector<LauncherRecord> all;
  auto& row = body_of(jobs).store->prepare(
      "SELECT id, host, pid, state, started, heard, lease_seconds, about FROM launchers "
      "WHERE state <= $1 ORDER BY id");
  row.bind(1, alive_only ? 1 : 3);
  while (row.next())
    all.push_back({row.integer(0), std::string(row.text(1)), row.integer(2),
                   static_cast<LauncherState>(row.integer(3)), row.number(4), row.number(5),
                   row.number(6), std::string(row.text(7))});
  return all;
}

Leases::Leases(JobDatabase& jobs, double lease_seconds, const std::string& about)
    : jobs_(jobs), database_(*body_of(jobs).store) {
  Transaction change(database_, Locking::rows);
  const double now = body_of(jobs_).lease_date();
  id_ = count_up(database_, "launcher");
  database_
      .prepare(
          "INSERT INTO launchers (id, host, pid, state, started, heard, lease_seconds, about) "
          "VALUES ($1, $2, $3, $4, $5, $6, $7, $8)")
      .bind(1, id_)
      .bind(2, host_name())
      .bind(3, std::int64_t{::getpid()})
      .bind(4, raw(LauncherState::alive))
      .bind(5, now)
      .bind(6, now)
      .bind(7, lease_seconds)
      .bind(8, about)
      .run();
  change.commit();
}

std::vector<Taken> Leases::select(const Wanted& wanted, bool several, int most) {
  std::string sql = fmt::format(
      "SELECT {}, j.attempt, j.parents FROM jobs j JOIN job_specs s ON s.id = j.id "
      "WHERE j.queue = 1 AND j.num_nodes {} AND j.num_nodes <= $1 AND j.cores <= $2 AND "
      "j.gpus <= $3",
      kJobColumns, several ? "> 1" : "= 1");
  if (wanted.one_rank_only) sql += " AND j.ranks = 1";
  const NamePattern workflow(wanted.workflow);
  int next = 3;
  if (!workflow.selects_all())
    sql += " AND " + workflow.condition(database_.kind(), "j.workflow", ++next);
  sql += fmt::format(" ORDER BY j.num_nodes DESC, j.minutes DESC, j.id LIMIT ${}", next + 1);
  // What another launcher is taking right now is not waited for.
  if (database_.kind() == "postgresql") sql += " FOR UPDATE OF j SKIP LOCKED";
  auto& row = database_.prepare(sql);
  row.bind(1, wanted.nodes).bind(2, wanted.cores).bind(3, wanted.gpus);
  if (!workflow.selects_all()) row.bind(next, workflow.bound(database_.kind()));
  row.bind(next + 1, most);
  auto taken = read_taken(row);
  for (auto& one : taken) {
    ++one.hold.attempt;
    database_.prepare("UPDATE jobs SET lease = $1, queue = 0, attempt = $2 WHERE id = $3")
        .bind(1, id_)
        .bind(2, one.hold.attempt)
        .bind(3, raw(one.job.id))
        .run();
  }
  return taken;
}

std::vector<Taken> Leases::read_taken(store::Statement& row) {
  std::vector<Taken> taken;
  std::vector<bool> has_parents;
  while (row.next()) {
    taken.push_back({read_job(row), {id_, row.integer(kAfterJobColumns)}});
    has_parents.push_back(row.integer(kAfterJobColumns + 1) > 0);
  }
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (has_parents[i]) taken[i].job.parents = jobs_.parents(taken[i].job.id);
    taken[i].job.launcher = id_;
  }
  return taken;
}

std::vector<Taken> Leases::taken() {
  auto& row = database_.prepare(
      fmt::format("SELECT {}, j.attempt, j.parents FROM jobs j JOIN job_specs s ON s.id = j.id "
                  "WHERE j.lease = $1 ORDER BY j.id",
                  kJobColumns));
  row.bind(1, id_);
  return read_taken(row);
}

std::vector<Taken> Leases::take(const Wanted& wanted) {
  // Most looks find nothing, and looking needs no lock.
  auto& any = database_.prepare("SELECT 1 FROM jobs WHERE queue = 1 LIMIT 1");
  const bool found = any.next();
  any.reset();
  if (!found) return {};
  Transaction change(database_, Locking::rows);
  if (!keep())
    throw_error(ErrorCode::failed_precondition,
                "another launcher has declared launcher {} lost and has its jobs", id_);
  std::vector<Taken> taken;
  if (wanted.several > 0 && wanted.nodes > 1) taken = select(wanted, true, wanted.several);
  if (wanted.single > 0)
    for (auto& one : select(wanted, false, wanted.single)) taken.push_back(std::move(one));
  change.commit();
  return taken;
}

bool Leases::keep() {
  const double now = body_of(jobs_).lease_date();
  return database_.prepare("UPDATE launchers SET heard = $1 WHERE id = $2 AND state = $3")
             .bind(1, now)
             .bind(2, id_)
             .bind(3, raw(LauncherState::alive))
             .run() == 1;
}

bool Leases::was_written(const Changes::Chain& chain) {
  auto& row = database_.prepare("SELECT state, lease, attempt FROM jobs WHERE id = $1");
  row.bind(1, raw(chain.id));
  const JobState to = chain.steps.empty() ? chain.from : chain.steps.back().state;
  const bool same = row.next() && row.integer(0) == raw(to) &&
                    row.integer(1) == (chain.release ? 0 : id_) &&
                    row.integer(2) == chain.hold->attempt;
  row.reset();
  return same;
}

std::vector<bool> Leases::write(const std::vector<Changes::Chain>& chains) {
  Changes changes(database_);
  if (!keep())
    throw_error(ErrorCode::failed_precondition,
                "another launcher has declared launcher {} lost and has its jobs", id_);
  std::vector<bool> written;
  written.reserve(chains.size());
  for (const auto& chain : chains) written.push_back(changes.apply(chain) || was_written(chain));
  changes.commit();
  made_ready_ = changes.made_ready();
  const bool released = std::any_of(chains.begin(), chains.end(), [](const auto& chain) {
    return chain.release &&
           is_takeable(chain.steps.empty() ? chain.from : chain.steps.back().state);
  });
  if (made_ready_ || released) body_of(jobs_).notify();
  const bool any_end = std::any_of(chains.begin(), chains.end(), [](const auto& chain) {
    return !chain.steps.empty() && is_end(chain.steps.back().state);
  });
  if (any_end) body_of(jobs_).notify_ends();
  return written;
}

std::vector<JobId> Leases::held_where(std::string_view condition) {
  std::vector<JobId> ids;
  auto& row =
      database_.prepare(fmt::format("SELECT id FROM jobs WHERE lease = $1 AND {}", condition));
  row.bind(1, id_);
  while (row.next()) ids.push_back(JobId{row.integer(0)});
  return ids;
}

std::vector<JobId> Leases::killed() {
  return held_where(fmt::format("state = {}", raw(JobState::user_killed)));
}

std::vector<JobId> Leases::yielding() { return held_where("yields = 1"); }

std::optional<JobState> Leases::state_of(JobId id, const Hold& hold) {
  auto& row =
      database_.prepare("SELECT state FROM jobs WHERE id = $1 AND lease = $2 AND attempt = $3");
  row.bind(1, raw(id)).bind(2, hold.launcher).bind(3, hold.attempt);
  std::optional<JobState> state;
  if (row.next()) state = static_cast<JobState>(row.integer(0));
  row.reset();
  return state;
}

Job Leases::reread(JobId id) { return jobs_.job(id); }

/// By the dates its lease is over, and it has not said anything in twice the time that one who
/// lives needs for that; or nothing was seen of it for a whole lease, whatever the dates say.
bool Leases::is_silent(const LauncherRecord& launcher, const Seen& seen) const {
  const auto watched = body_of(jobs_).lease_clock->now() - seen.since;
  const auto lease = clock_duration(launcher.lease_seconds);
  if (watched > lease) return true;
  return watched >= lease / 2 &&
         launcher.heard + launcher.lease_seconds < body_of(jobs_).lease_date();
}

std::int64_t Leases::free_lost() {
  std::int64_t freed = 0;
  waits_for_tasks_ = false;
  for (const auto& launcher : launchers(jobs_, true)) {
    if (launcher.id == id_) continue;
    const bool is_gone = is_gone_here(launcher);
    const auto now = body_of(jobs_).lease_clock->now();
    Seen& seen = seen_[launcher.id];
    if (seen.heard != launcher.heard) seen = {launcher.heard, now, seen.gone};
    if (!is_silent(launcher, seen)) {
      if (!is_gone) continue;
      // Its custodians end its tasks meanwhile: no job may run twice at the same time.
      if (!seen.gone) seen.gone = now;
      if (now < *seen.gone + clock_duration(grace_of(launcher))) {
        waits_for_tasks_ = true;
        continue;
      }
    }
    Changes changes(database_);
    auto& mark = database_.prepare(
        "UPDATE launchers SET state = $1 WHERE id = $2 AND state = $3 AND heard < $4");
    mark.bind(1, raw(LauncherState::lost)).bind(2, launcher.id).bind(3, raw(LauncherState::alive));
    mark.bind(4, launcher.heard + 1e-3);
    if (mark.run() == 0) continue;  // it spoke after all, or somebody was faster
    seen_.erase(launcher.id);
    freed += free_jobs(
        database_, changes, launcher.id,
        is_gone ? fmt::format("the process {} of launcher {} ({}) is gone", launcher.pid,
                              launcher.id, launcher.host)
                : fmt::format("launcher {} ({}:{}) was not heard of for {} s", launcher.id,
                              launcher.host, launcher.pid, launcher.lease_seconds),
        body_of(jobs_).date());
    changes.commit();
  }
  if (freed > 0) body_of(jobs_).notify();
  return freed;
}

bool Leases::others_work(const std::string& workflow) {
  auto& row =
      database_.prepare("SELECT DISTINCT workflow FROM jobs WHERE lease <> 0 AND lease <> $1");
  row.bind(1, id_);
  bool any = false;
  const NamePattern pattern(workflow);
  while (row.next()) any = any || pattern.selects(row.text(0));
  return any;
}

void Leases::end() noexcept {
  try {
    Changes changes(database_);
    free_jobs(database_, changes, id_, "its launcher has ended", body_of(jobs_).date());
    database_.prepare("UPDATE launchers SET state = $1 WHERE id = $2 AND state = $3")
        .bind(1, raw(LauncherState::ended))
        .bind(2, id_)
        .bind(3, raw(LauncherState::alive))
        .run();
    changes.commit();
    body_of(jobs_).notify();
  } catch (const std::exception&) {
    // The lease will end.
  }
}

}  // namespace kolo::jobs
