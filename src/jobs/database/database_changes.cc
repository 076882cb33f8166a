// What users change in a database: applications, new jobs, dependencies, kills, removals.
#include <algorithm>
#include <set>

#include "base/errors.h"
#include "base/registry.h"
#include "base/words.h"
#include "jobs/database/body.h"
#include "jobs/database/changes.h"
#include "jobs/database/fields.h"

namespace kolo::jobs {
namespace {

using store::Locking;
using store::Transaction;

JobState state_of(store::Database& database, JobId id) {
  auto& row = database.prepare("SELECT state FROM jobs WHERE id = $1");
  row.bind(1, raw(id));
  if (!row.next()) throw_error(ErrorCode::not_found, "there is no job {}", raw(id));
  const auto state = static_cast<JobState>(row.integer(0));
  row.reset();
  return state;
}

/// One more child of `parent`; the parent's state.
JobState add_child(store::Database& database, JobId parent) {
  auto& row =
      database.prepare("UPDATE jobs SET children = children + 1 WHERE id = $1 RETURNING state");
  row.bind(1, raw(parent));
  if (!row.next()) throw_error(ErrorCode::not_found, "there is no job {} to wait for", raw(parent));
  const auto state = static_cast<JobState>(row.integer(0));
  row.reset();
  return state;
}

/// A new job's first states, as its parents are.
struct Beginning {
  std::int64_t parents = 0, waiting = 0;
  std::vector<Step> steps;
};

Beginning begin_job(store::Database& database, const Job& job, double now) {
  Beginning begin;
  begin.steps.push_back({JobState::created, now, "created"});
  std::string bad;
  for (const JobId parent : std::set(job.parents.begin(), job.parents.end())) {
    const JobState state = add_child(database, parent);
    ++begin.parents;
    if (state == JobState::job_finished || !job.wait_for_parents) continue;
    if (is_end(state) && bad.empty())
      bad = fmt::format("parent {} ended {}", raw(parent), to_string(state));
    ++begin.waiting;
  }
  if (begin.waiting > 0)
    begin.steps.push_back(
        {JobState::awaiting_parents, now,
         begin.waiting == 1 ? "waits for 1 job" : fmt::format("waits for {} jobs", begin.waiting)});
  else
    begin.steps.push_back({JobState::ready, now, ""});
  if (!bad.empty()) begin.steps.push_back({JobState::failed, now, bad});
  return begin;
}

}  // namespace

void JobDatabase::set_application(const Application& application) {
  if (application.name.empty() || application.executable.empty())
    throw_error(ErrorCode::invalid_argument, "an application needs a name and an executable");
  for (const auto* line :
       {&application.executable, &application.preprocess, &application.postprocess})
    split_words(*line, "application " + application.name);
  body_->store
      ->prepare(
          "INSERT INTO applications (name, executable, preprocess, postprocess, envscript, "
          "description) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (name) DO UPDATE SET "
          "executable = excluded.executable, preprocess = excluded.preprocess, postprocess = "
          "excluded.postprocess, envscript = excluded.envscript, description = "
          "excluded.description")
      .bind(1, application.name)
      .bind(2, application.executable)
      .bind(3, application.preprocess)
      .bind(4, application.postprocess)
      .bind(5, application.envscript)
      .bind(6, application.description)
      .run();
}

std::vector<Application> JobDatabase::applications() {
  std::vector<Application> all;
  auto& row = body_->store->prepare(
      "SELECT name, executable, preprocess, postprocess, envscript, description FROM applications "
      "ORDER BY name");
  while (row.next())
    all.push_back({std::string(row.text(0)), std::string(row.text(1)), std::string(row.text(2)),
                   std::string(row.text(3)), std::string(row.text(4)), std::string(row.text(5))});
  return all;
}

Application JobDatabase::application(std::string_view name) {
  const auto all = applications();
  std::vector<std::string_view> known;
  for (const auto& application : all) {
    if (application.name == name) return application;
    known.push_back(application.name);
  }
  if (known.empty())
    throw_error(ErrorCode::not_found,
                "there is no application '{}'; add it with kolo app --name {} "
                "--executable …",
                name, name);
  throw_unknown_name("application", name, known);
}

void JobDatabase::remove_application(std::string_view name) {
  (void)application(name);
  Transaction change(*body_->store);
  for (const auto& count : count_by_state())
    if (!is_end(count.state)) {
      auto& row = body_->store->prepare(
          "SELECT id FROM jobs WHERE application = $1 AND state = $2 LIMIT 1");
      row.bind(1, name).bind(2, raw(count.state));
      if (row.next())
        throw_error(ErrorCode::failed_precondition,
                    "job {} has not ended and uses the application {}", row.integer(0), name);
    }
  body_->store->prepare("DELETE FROM applications WHERE name = $1").bind(1, name).run();
  change.commit();
}

JobId JobDatabase::create(const Job& job) { return create(std::vector<Job>{job})[0]; }

std::vector<JobId> JobDatabase::create(const std::vector<Job>& jobs) {
  if (jobs.empty()) return {};
  std::set<std::string, std::less<>> known;
  for (const auto& job : jobs) {
    check_job(job);
    if (!known.contains(job.application)) known.insert(application(job.application).name);
  }
  auto& database = *body_->store;
  Transaction change(database, Locking::rows);
  const auto count = static_cast<std::int64_t>(jobs.size());
  const std::int64_t last = count_up(database, "job", count);
  const double now = body_->date();
  std::vector<Beginning> begins;
  std::vector<JobId> ids;
  begins.reserve(jobs.size());
  for (const auto& job : jobs) {
    ids.push_back(JobId{last - count + 1 + static_cast<std::int64_t>(ids.size())});
    begins.push_back(begin_job(database, job, now));
  }

  auto rows = database.insert_rows(
      "jobs", {"id", "name", "workflow", "application", "state", "queue", "lease", "attempt",
               "steps", "waiting", "parents", "children", "retries", "num_nodes", "ranks", "cores",
               "gpus", "minutes", "created"});
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    const JobState state = begins[i].steps.back().state;
    rows->add(raw(ids[i])).add(job.name).add(job.workflow).add(job.application).add(raw(state));
    rows->add(is_takeable(state) ? 1 : 0).add(0).add(0);
    rows->add(static_cast<std::int64_t>(begins[i].steps.size())).add(begins[i].waiting);
    rows->add(begins[i].parents)
        .add(0)
        .add(0)
        .add(job.num_nodes)
        .add(job.ranks_per_node)
        .add(cores_per_node(job));
    rows->add(job.gpus_per_rank * job.ranks_per_node).add(job.wall_time_minutes).add(now);
    rows->end_row();
  }
  rows->finish();
  rows = database.insert_rows("job_specs", {"id", "spec"});
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    rows->add(raw(ids[i])).add(encode_spec(jobs[i]));
    rows->end_row();
  }
  rows->finish();
  rows = database.insert_rows("job_history", {"job", "seq", "state", "time", "reason"});
  for (std::size_t i = 0; i < jobs.size(); ++i)
    for (std::size_t k = 0; k < begins[i].steps.size(); ++k) {
      const Step& step = begins[i].steps[k];
      rows->add(raw(ids[i])).add(static_cast<std::int64_t>(k + 1)).add(raw(step.state));
      rows->add(step.time).add(step.reason).end_row();
    }
  rows->finish();
  rows = database.insert_rows("job_parents", {"child", "parent"});
  for (std::size_t i = 0; i < jobs.size(); ++i)
    for (const JobId parent : std::set(jobs[i].parents.begin(), jobs[i].parents.end())) {
      rows->add(raw(ids[i])).add(raw(parent));
      rows->end_row();
    }
  rows->finish();
  rows.reset();
  change.commit();
  body_->notify();
  return ids;
}

void JobDatabase::add_dependency(JobId parent, JobId child) {
  auto& database = *body_->store;
  // Whole: two dependencies added at once could make a cycle that neither sees.
  Changes changes(database, Locking::all);
  const JobState child_state = state_of(database, child);
  (void)state_of(database, parent);
  auto& reach = database.prepare(
      "WITH RECURSIVE below(id) AS (SELECT CAST($1 AS BIGINT) UNION SELECT p.child FROM "
      "job_parents p JOIN below ON p.parent = below.id) SELECT 1 FROM below WHERE id = $2");
  reach.bind(1, raw(child)).bind(2, raw(parent));
  const bool cycle = reach.next();
  reach.reset();
  if (parent == child)
    throw_error(ErrorCode::invalid_argument, "job {} cannot wait for itself", raw(child));
  if (cycle)
    throw_error(
        ErrorCode::invalid_argument,
        "job {} cannot wait for job {}: job {} already waits for job {}, so neither could start",
        raw(child), raw(parent), raw(parent), raw(child));
  auto& there = database.prepare("SELECT 1 FROM job_parents WHERE child = $1 AND parent = $2");
  there.bind(1, raw(child)).bind(2, raw(parent));
  const bool known = there.next();
  there.reset();
  if (known) return;
  const JobState parent_state = add_child(database, parent);
  const bool waits = parent_state != JobState::job_finished;
  // Locks the child's row: no launcher takes it from here on.
  auto& update = database.prepare(
      "UPDATE jobs SET parents = parents + 1, waiting = waiting + $1 WHERE id = $2 RETURNING "
      "lease");
  update.bind(1, waits ? 1 : 0).bind(2, raw(child));
  const bool is_held = update.next() && update.integer(0) != 0;
  update.reset();
  if (is_held || (child_state != JobState::awaiting_parents && child_state != JobState::ready))
    throw_error(ErrorCode::failed_precondition, "job {} has begun: it is {}", raw(child),
                is_held ? "with a launcher" : to_string(child_state));
  database.prepare("INSERT INTO job_parents (child, parent) VALUES ($1, $2)")
      .bind(1, raw(child))
      .bind(2, raw(parent))
      .run();
  std::vector<Step> steps;
  if (waits && child_state == JobState::ready)
    steps.push_back(
        {JobState::awaiting_parents, body_->date(), fmt::format("waits for job {}", raw(parent))});
  if (waits && is_end(parent_state))
    steps.push_back({JobState::failed, body_->date(),
                     fmt::format("parent {} ended {}", raw(parent), to_string(parent_state))});
  if (!steps.empty()) changes.apply({.id = child, .from = child_state, .steps = steps});
  changes.commit();
}

std::int64_t JobDatabase::kill(const std::vector<JobId>& ids, bool recursive,
                               const std::string& reason) {
  auto& database = *body_->store;
  std::vector<JobId> all = ids;
  std::set<JobId> seen(ids.begin(), ids.end());
  for (std::size_t i = 0; recursive && i < all.size(); ++i)
    for (const JobId child : children(all[i]))
      if (seen.insert(child).second) all.push_back(child);
  std::int64_t killed = 0;
  Changes changes(database);
  // Children first: they are killed too, instead of failing for their parents.
  for (auto id = all.rbegin(); id != all.rend(); ++id) {
    // A launcher may move it in between: then from where it is now.
    for (int tries = 0; tries < 100; ++tries) {
      const JobState state = state_of(database, *id);
      if (is_end(state)) break;
      const Step step{JobState::user_killed, body_->date(), reason};
      if (changes.apply({.id = *id, .from = state, .steps = {&step, 1}})) {
        ++killed;
        break;
      }
    }
  }
  changes.commit();
  if (killed > 0) {
    body_->notify();
    body_->notify_ends();
  }
  return killed;
}

std::int64_t JobDatabase::remove(const std::vector<JobId>& ids) {
  auto& database = *body_->store;
  Transaction change(database);
  std::int64_t removed = 0;
  for (const JobId id : ids) {
    auto& row = database.prepare("SELECT lease, state FROM jobs WHERE id = $1");
    row.bind(1, raw(id));
    if (!row.next()) continue;
    const std::int64_t lease = row.integer(0);
    row.reset();
    if (lease != 0)
      throw_error(ErrorCode::failed_precondition,
                  "launcher {1} holds job {0}; end it with kolo kill --id {2}", raw(id), lease,
                  raw(id));
    for (const JobId child : children(id)) {
      const JobState state = state_of(database, child);
      const bool goes_too = std::find(ids.begin(), ids.end(), child) != ids.end();
      if (!is_end(state) && !goes_too)
        throw_error(ErrorCode::failed_precondition, "job {} still waits for job {}; remove both",
                    raw(child), raw(id));
    }
    for (const char* sql :
         {"DELETE FROM job_parents WHERE child = $1", "DELETE FROM job_parents WHERE parent = $1",
          "DELETE FROM job_history WHERE job = $1", "DELETE FROM job_specs WHERE id = $1"})
      database.prepare(sql).bind(1, raw(id)).run();
    removed += database.prepare("DELETE FROM jobs WHERE id = $1").bind(1, raw(id)).run();
  }
  change.commit();
  return removed;
}

void JobDatabase::modify(JobId id, std::string_view field, const std::string& value) {
  auto& database = *body_->store;
  if (field == "state") {
    const JobState wanted = parse_state(value);
    if (is_end(job(id).state) && (wanted == JobState::restart_ready || wanted == JobState::ready)) {
      retry({id});
      return;
    }
    Changes changes(database);
    const JobState state = state_of(database, id);
    const Step step{wanted, body_->date(), "set by the user"};
    if (!changes.apply({.id = id, .from = state, .steps = {&step, 1}}))
      throw_error(ErrorCode::unavailable, "somebody else has just changed job {}; try again",
                  raw(id));
    changes.commit();
    body_->notify();
    return;
  }
  const Field* known = find_field(field);
  const bool is_environment = field == "environ" || field == "environ_vars" || field == "env";
  if (known == nullptr && !is_environment) {
    std::vector<std::string_view> names{"state", "environ"};
    for (const auto& row : fields()) names.push_back(row.name);
    throw_unknown_name("field", field, names);
  }
  Transaction change(database);
  Job changed = job(id);
  if (is_environment) {
    check_variable(value);
    changed.environ.push_back(value);
  } else {
    set_field(changed, *known, value);
  }
  check_job(changed);
  (void)application(changed.application);
  // A handler may change the job it handles.
  const bool is_handled =
      changed.state == JobState::run_error || changed.state == JobState::run_timeout;
  if (is_end(changed.state) || (changed.launcher != 0 && !is_handled))
    throw_error(ErrorCode::failed_precondition, "job {} is {}{}: it is too late to change it",
                raw(id), to_string(changed.state),
                changed.launcher != 0 ? " and with a launcher" : "");
  database
      .prepare(
          "UPDATE jobs SET name = $1, workflow = $2, application = $3, num_nodes = $4, "
          "ranks = $5, cores = $6, gpus = $7, minutes = $8 WHERE id = $9")
      .bind(1, changed.name)
      .bind(2, changed.workflow)
      .bind(3, changed.application)
      .bind(4, changed.num_nodes)
      .bind(5, changed.ranks_per_node)
      .bind(6, cores_per_node(changed))
      .bind(7, changed.gpus_per_rank * changed.ranks_per_node)
      .bind(8, changed.wall_time_minutes)
      .bind(9, raw(id))
      .run();
  database.prepare("UPDATE job_specs SET spec = $1 WHERE id = $2")
      .bind(1, encode_spec(changed))
      .bind(2, raw(id))
      .run();
  change.commit();
  body_->notify();
}

}  // namespace kolo::jobs
