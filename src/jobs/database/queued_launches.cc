// submit_launch() writes the script once for nothing, so that a wrong request fails before there is
// a row. Then it stores the row, writes the script under the number of the row, submits it and
// stores the answer. If the process dies in between, the row stays and shows that a submission was
// under way. A submission that fails is withdrawn (launch_claim.h). A query asks each batch system
// once about all its open launches. An answer that is missing or unknown is shown but not stored,
// so that a launch is asked about again later. To cancel, the states are asked for first, because
// those in the database may be old.
#include "jobs/database/queued_launches.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
#include "base/words.h"
#include "jobs/database/body.h"
#include "jobs/database/launch_claim.h"

namespace kolo::jobs {
namespace {

/// The launcher ends a little before its allocation does: jobs are then ended in order.
int launcher_minutes(int minutes) { return minutes > 4 ? minutes - 2 : std::max(1, minutes - 1); }

bool is_open(const QueuedLaunch& launch) {
  return !launch.scheduler_id.empty() && launch.state != "finished";
}

void set_state(JobDatabase& jobs, std::int64_t id, const std::string& scheduler_id,
               std::string_view state) {
  body_of(jobs)
      .store->prepare("UPDATE queued_launches SET scheduler_id = $1, state = $2 WHERE id = $3")
      .bind(1, scheduler_id)
      .bind(2, state)
      .bind(3, id)
      .run();
}

/// After a failed submission: gives the launch up and the jobs back that were added for it. Returns
/// if its job has begun all the same; otherwise it throws what the caller is to be told.
void give_up(JobDatabase& jobs, QueuedLaunch& launch, const std::filesystem::path& claim,
             const LaunchRequest& request, const Error& failure) {
  Withdrawal withdrawal;
  try {
    withdrawal = withdraw_launch(claim);
  } catch (const Error& error) {
    throw_error(failure.code(),
                "{}; it may have taken the job, which cannot be withdrawn ({}): look there for "
                "launch {} before you submit it again",
                failure.message(), error.message(), launch.id);
  }
  if (!withdrawal.is_withdrawn) {
    log::warning("{}; the launcher has begun all the same", failure.message());
    launch.scheduler_id = withdrawal.scheduler_id;
    return;
  }
  try {
    set_state(jobs, launch.id, "", "submit-failed");
    std::vector<JobId> unused;
    for (const JobId id : request.jobs)
      if (!is_end(jobs.job(id).state)) unused.push_back(id);
    jobs.remove(unused);
  } catch (const Error& error) {  // a launcher has them already, or the database does not answer
    log::warning("the jobs of the launch stay: {}", error.message());
  }
  throw_error(failure.code(),
              "{}; no launcher will run: should it have taken the job, that ends at once",
              failure.message());
}

}  // namespace

std::string launch_script(JobDatabase& jobs, const launch::BatchSystem& system,
                          const LaunchRequest& request, const std::string& name) {
  launch::BatchRequest batch = request.batch;
  batch.log = (jobs.folder() / "log" / (name + ".log")).string();
  batch.commands = fmt::format(
      "export KOLO_DB={}\n{}\nexec {} launcher --job-mode {} "
      "--time-limit-minutes {}",
      shell_quoted(jobs.folder().string()), code_to_claim(claim_of_launch(jobs.folder(), name)),
      shell_quoted(request.kolo), shell_quoted(request.job_mode), launcher_minutes(batch.minutes));
  if (!request.workflow.empty())
    batch.commands += " --wf-filter " + shell_quoted(request.workflow);
  else
    batch.commands += " --consume-all";
  if (system.name() == "local") batch.commands += fmt::format(" --nodes {}", batch.nodes);
  for (const auto& option : request.launcher_options) batch.commands += " " + shell_quoted(option);
  const auto own = jobs.folder() / "job-template.sh";
  const bool replaced = std::filesystem::exists(own);
  if (!replaced) system.check(batch);
  const std::string text = replaced ? read_file(own) : std::string(system.script_template());
  return system.write_script(text, batch);
}

QueuedLaunch submit_launch(JobDatabase& jobs, launch::BatchSystem& system,
                           const LaunchRequest& request) {
  // What cannot be written is refused before anything is recorded.
  (void)launch_script(jobs, system, request, "qlaunch");
  auto& database = *body_of(jobs).store;
  QueuedLaunch launch{.scheduler = std::string(system.name()),
                      .state = "pending-submission",
                      .created = body_of(jobs).date()};
  launch.about = json_text(Json{{"nodes", request.batch.nodes},
                                {"minutes", request.batch.minutes},
                                {"queue", request.batch.queue},
                                {"project", request.batch.project},
                                {"job_mode", request.job_mode},
                                {"workflow", request.workflow}});
  {
    store::Transaction change(database, store::Locking::rows);
    launch.id = count_up(database, "queued_launch");
    database
        .prepare(
            "INSERT INTO queued_launches (id, scheduler, scheduler_id, state, created, about) "
            "VALUES ($1, $2, '', $3, $4, $5)")
        .bind(1, launch.id)
        .bind(2, launch.scheduler)
        .bind(3, launch.state)
        .bind(4, launch.created)
        .bind(5, launch.about)
        .run();
    change.commit();
  }
  const std::string name = fmt::format("qlaunch{}", launch.id);
  const auto script = jobs.folder() / "qsubmit" / (name + ".sh");
  const auto claim = claim_of_launch(jobs.folder(), name);
  try {
    // One of an earlier database in this folder is not its own.
    std::error_code none;
    std::filesystem::remove(claim, none);
    write_file_atomically(script, launch_script(jobs, system, request, name), 0755);
    launch.scheduler_id = system.submit(script);
  } catch (const Error& error) {
    give_up(jobs, launch, claim, request, error);
  }
  launch.state = "submitted";
  try {
    set_state(jobs, launch.id, launch.scheduler_id, launch.state);
  } catch (const Error& error) {
    throw_error(error.code(), "{} has taken launch {} as job {}, but that cannot be noted: {}",
                launch.scheduler, launch.id, launch.scheduler_id, error.message());
  }
  return launch;
}

namespace {

/// kolo was killed while it submitted it: the batch system may have it, under a number that only
/// the job itself can tell.
bool was_cut_short(const QueuedLaunch& launch) {
  return launch.scheduler_id.empty() && launch.state == "pending-submission";
}

}  // namespace

std::int64_t cancel_launches(JobDatabase& jobs, const std::vector<std::int64_t>& ids) {
  std::string trouble;
  std::map<std::string, std::vector<std::string>> open;  // by batch system
  std::int64_t count = 0;
  std::set<std::int64_t> wanted(ids.begin(), ids.end());
  for (auto& launch : queued_launches(jobs, true, trouble)) {
    if (wanted.erase(launch.id) == 0 && !ids.empty()) continue;
    if (was_cut_short(launch)) {
      const auto claim = claim_of_launch(jobs.folder(), fmt::format("qlaunch{}", launch.id));
      const Withdrawal withdrawal = withdraw_launch(claim);
      launch.scheduler_id = withdrawal.scheduler_id;
      if (withdrawal.is_withdrawn) set_state(jobs, launch.id, "", "submit-failed");
      count += withdrawal.is_withdrawn ? 1 : 0;
    }
    if (!is_open(launch)) continue;
    open[launch.scheduler].push_back(launch.scheduler_id);
    ++count;
  }
  if (!wanted.empty()) throw_error(ErrorCode::not_found, "there is no launch {}", *wanted.begin());
  std::string refusals;
  for (const auto& [name, scheduler_ids] : open) {
    try {
      launch::make_batch_system(name)->cancel(scheduler_ids);
    } catch (const Error& error) {  // those of other systems can be cancelled all the same
      refusals += (refusals.empty() ? "" : "; ") + error.message();
    }
  }
  if (!refusals.empty()) throw_error(ErrorCode::unavailable, "{}", refusals);
  return count;
}

std::vector<QueuedLaunch> queued_launches(JobDatabase& jobs, bool ask, std::string& trouble) {
  std::vector<QueuedLaunch> all;
  auto& row = body_of(jobs).store->prepare(
      "SELECT id, scheduler, scheduler_id, state, created, about FROM queued_launches ORDER BY id");
  while (row.next())
    all.push_back({row.integer(0), std::string(row.text(1)), std::string(row.text(2)),
                   std::string(row.text(3)), row.number(4), std::string(row.text(5))});
  if (!ask) return all;
  std::map<std::string, std::vector<QueuedLaunch*>> open;
  for (auto& launch : all)
    if (is_open(launch)) open[launch.scheduler].push_back(&launch);
  for (auto& [name, launches] : open) {
    std::vector<std::string> ids;
    for (const auto* launch : launches) ids.push_back(launch->scheduler_id);
    launch::BatchAnswer answer;
    try {
      answer = launch::make_batch_system(name)->status(ids);
    } catch (const Error& error) {
      answer.trouble = error.message();
    }
    if (!answer.trouble.empty()) trouble = answer.trouble;
    for (auto* launch : launches) {
      const auto state = answer.states.find(launch->scheduler_id);
      const bool known =
          state != answer.states.end() && state->second != launch::BatchState::unknown;
      if (const auto reason = answer.reasons.find(launch->scheduler_id);
          reason != answer.reasons.end())
        launch->reason = reason->second;
      launch->state = known ? std::string(to_string(state->second)) : "unknown";
      if (known) set_state(jobs, launch->id, launch->scheduler_id, launch->state);
    }
  }
  return all;
}

}  // namespace kolo::jobs
