// Rows of a study: to the database and back.
#include <algorithm>

#include "store/raw.h"
#include "store/study_store.h"

namespace kolo::store {
namespace {

std::optional<std::int64_t> optional_integer(const Statement& row, int column) {
  return row.is_null(column) ? std::nullopt : std::optional(row.integer(column));
}
std::optional<double> optional_number(const Statement& row, int column) {
  return row.is_null(column) ? std::nullopt : std::optional(row.number(column));
}

constexpr std::string_view kReportColumns =
    "seq, trial, iteration, time, seconds, metrics, action, reason, others_waited";

void read_report(const Statement& row, ReportRecord& report) {
  report.seq = row.integer(0);
  report.trial = row.integer(1);
  report.iteration = row.integer(2);
  report.time = row.number(3);
  report.seconds = row.number(4);
  report.metrics = row.text(5);
  report.action = row.integer(6);
  report.reason = row.text(7);
  report.others_waited = row.integer(8) != 0;
}

std::vector<CheckpointRecord> read_checkpoints(Statement& row) {
  std::vector<CheckpointRecord> all;
  while (row.next())
    all.push_back(
        {row.integer(0), row.integer(1), row.integer(2), std::string(row.text(3)), row.number(4)});
  return all;
}

std::vector<EventRecord> read_events(Statement& row) {
  std::vector<EventRecord> all;
  while (row.next())
    all.push_back({row.integer(0), row.number(1), optional_integer(row, 2),
                   std::string(row.text(3)), std::string(row.text(4))});
  return all;
}

}  // namespace

void StudyStore::write_trials(std::int64_t study, const StudyBatch& batch) {
  if (batch.trials.empty()) return;
  for (const auto& trial : batch.trials) {
    auto& put = database_.prepare(
        "INSERT INTO trials (study, number, status, point, config, directory, asked_seq, ended_seq,"
        " created, started, ended, seconds, iteration, failures, outcome, error, why, place) "
        "VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18) "
        "ON CONFLICT (study, number) DO UPDATE SET status = excluded.status, "
        "point = excluded.point, config = excluded.config, directory = excluded.directory, "
        "ended_seq = excluded.ended_seq, started = excluded.started, ended = excluded.ended, "
        "seconds = excluded.seconds, iteration = excluded.iteration, "
        "failures = excluded.failures, outcome = excluded.outcome, error = excluded.error, "
        "why = excluded.why, place = excluded.place");
    put.bind(1, study).bind(2, trial.number).bind(3, static_cast<std::int64_t>(trial.status));
    put.bind(4, trial.point).bind(5, trial.config).bind(6, trial.directory);
    put.bind(7, trial.asked_seq).bind(8, trial.ended_seq).bind(9, trial.created);
    put.bind(10, trial.started).bind(11, trial.ended).bind(12, trial.seconds);
    put.bind(13, trial.iteration).bind(14, trial.failures).bind(15, trial.outcome);
    put.bind(16, trial.error).bind(17, trial.why).bind(18, trial.place);
    put.run();
  }
}

void StudyStore::write_reports(std::int64_t study, const StudyBatch& batch) {
  if (batch.reports.empty()) return;
  auto& put = database_.prepare(
      "INSERT INTO reports (study, trial, seq, iteration, time, seconds, metrics, action, reason, "
      "others_waited) VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)");
  put.bind(1, study);
  for (const auto& report : batch.reports) {
    put.bind(2, report.trial).bind(3, report.seq).bind(4, report.iteration).bind(5, report.time);
    put.bind(6, report.seconds).bind(7, report.metrics).bind(8, report.action);
    put.bind(9, report.reason).bind(10, report.others_waited ? 1 : 0);
    put.run();
  }
}

void StudyStore::write_rest(std::int64_t study, const StudyBatch& batch) {
  for (const auto& checkpoint : batch.checkpoints)
    database_
        .prepare(
            "INSERT INTO checkpoints (study, trial, seq, iteration, path, created) "
            "VALUES ($1,$2,$3,$4,$5,$6) ON CONFLICT (study, path) DO UPDATE SET "
            "trial = excluded.trial, seq = excluded.seq, iteration = excluded.iteration, "
            "created = excluded.created")
        .bind(1, study)
        .bind(2, checkpoint.trial)
        .bind(3, checkpoint.seq)
        .bind(4, checkpoint.iteration)
        .bind(5, checkpoint.path)
        .bind(6, checkpoint.created)
        .run();
  for (const auto& removed : batch.removed_checkpoints)
    database_.prepare("DELETE FROM checkpoints WHERE study = $1 AND path = $2 AND seq = $3")
        .bind(1, study)
        .bind(2, removed.path)
        .bind(3, removed.seq)
        .run();
  for (const auto& event : batch.events)
    database_
        .prepare(
            "INSERT INTO events (study, seq, time, trial, kind, detail) "
            "VALUES ($1,$2,$3,$4,$5,$6)")
        .bind(1, study)
        .bind(2, event.seq)
        .bind(3, event.time)
        .bind(4, event.trial)
        .bind(5, event.kind)
        .bind(6, event.detail)
        .run();
  for (const std::int64_t number : batch.done_requests)
    database_.prepare("DELETE FROM requests WHERE study = $1 AND number = $2")
        .bind(1, study)
        .bind(2, number)
        .run();
  if (batch.status)
    database_.prepare("UPDATE studies SET status = $1 WHERE id = $2")
        .bind(1, static_cast<std::int64_t>(*batch.status))
        .bind(2, study)
        .run();
  if (batch.spec)
    database_.prepare("UPDATE studies SET spec = $1 WHERE id = $2")
        .bind(1, *batch.spec)
        .bind(2, study)
        .run();
}

std::int64_t StudyStore::trial_count(StudyId study) {
  auto& row = database_.prepare("SELECT COUNT(*) FROM trials WHERE study = $1");
  row.bind(1, raw(study));
  row.next();
  const std::int64_t count = row.integer(0);
  row.reset();
  return count;
}

std::int64_t StudyStore::ended_before(StudyId study, std::int64_t seq) {
  auto& row = database_.prepare("SELECT COUNT(*) FROM trials WHERE study = $1 AND ended_seq < $2");
  row.bind(1, raw(study)).bind(2, seq);
  row.next();
  const std::int64_t count = row.integer(0);
  row.reset();
  return count;
}

std::vector<TrialRecord> StudyStore::trials(StudyId study, TrialRange range) {
  std::vector<TrialRecord> all;
  auto& row = database_.prepare(
      "SELECT number, status, point, config, directory, asked_seq, ended_seq, created, started, "
      "ended, seconds, iteration, failures, outcome, error, why, place FROM trials "
      "WHERE study = $1 AND number >= $2 AND number < $3 ORDER BY number");
  row.bind(1, raw(study)).bind(2, range.first).bind(3, range.end);
  while (row.next()) {
    auto& trial = all.emplace_back();
    trial.number = row.integer(0);
    trial.status = static_cast<TrialStatus>(row.integer(1));
    trial.point = row.text(2);
    trial.config = row.text(3);
    trial.directory = row.text(4);
    trial.asked_seq = row.integer(5);
    trial.ended_seq = optional_integer(row, 6);
    trial.created = row.number(7);
    trial.started = optional_number(row, 8);
    trial.ended = optional_number(row, 9);
    trial.seconds = row.number(10);
    trial.iteration = row.integer(11);
    trial.failures = row.integer(12);
    trial.outcome = row.text(13);
    trial.error = row.text(14);
    trial.why = row.text(15);
    trial.place = row.text(16);
  }
  for (const auto& trial : all) check_stored(trial.status, TrialStatus::error, "a trial's status");
  return all;
}

void StudyStore::each_report(StudyId study, const std::function<void(ReportRecord&)>& take) {
  // They lie by trial; the journal's order is made here, which is faster than in the database.
  std::vector<ReportRecord> all;
  auto& row =
      database_.prepare("SELECT " + std::string(kReportColumns) + " FROM reports WHERE study = $1");
  row.bind(1, raw(study));
  while (row.next()) read_report(row, all.emplace_back());
  std::vector<std::uint32_t> order(all.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&all](std::uint32_t left, std::uint32_t right) {
    return all[left].seq < all[right].seq;
  });
  for (const std::uint32_t place : order) take(all[place]);
}

std::vector<ReportRecord> StudyStore::reports_of(StudyId study, std::int64_t trial) {
  std::vector<ReportRecord> all;
  auto& row = database_.prepare("SELECT " + std::string(kReportColumns) +
                                " FROM reports WHERE study = $1 AND trial = $2 ORDER BY seq");
  row.bind(1, raw(study)).bind(2, trial);
  while (row.next()) read_report(row, all.emplace_back());
  return all;
}

std::vector<ReportRecord> StudyStore::last_reports(StudyId study, TrialRange range) {
  // From the trials to their reports: one search for each trial, however many reports it has.
  std::vector<ReportRecord> all;
  auto& row = database_.prepare(
      "SELECT r.seq, r.trial, r.iteration, r.time, r.seconds, r.metrics, r.action, r.reason, "
      "r.others_waited FROM trials t JOIN reports r ON r.study = t.study AND r.trial = t.number "
      "AND "
      "r.seq = (SELECT MAX(seq) FROM reports l WHERE l.study = t.study AND l.trial = t.number) "
      "WHERE t.study = $1 AND t.number >= $2 AND t.number < $3 ORDER BY t.number");
  row.bind(1, raw(study)).bind(2, range.first).bind(3, range.end);
  while (row.next()) read_report(row, all.emplace_back());
  return all;
}

std::vector<ReportRecord> StudyStore::reports_after(StudyId study, TrialRange range,
                                                    std::int64_t after) {
  std::vector<ReportRecord> all;
  auto& row = database_.prepare(
      "SELECT r.seq, r.trial, r.iteration, r.time, r.seconds, r.metrics, r.action, r.reason, "
      "r.others_waited FROM trials t JOIN reports r ON r.study = t.study AND r.trial = t.number "
      "WHERE t.study = $1 AND t.number >= $2 AND t.number < $3 AND r.seq > $4 ORDER BY r.seq");
  row.bind(1, raw(study)).bind(2, range.first).bind(3, range.end).bind(4, after);
  while (row.next()) read_report(row, all.emplace_back());
  return all;
}

std::vector<CheckpointRecord> StudyStore::checkpoints(StudyId study) {
  auto& row = database_.prepare(
      "SELECT trial, seq, iteration, path, created FROM checkpoints WHERE study = $1 "
      "ORDER BY seq, trial, iteration");
  return read_checkpoints(row.bind(1, raw(study)));
}

std::vector<CheckpointRecord> StudyStore::checkpoints_of(StudyId study, std::int64_t trial) {
  auto& row = database_.prepare(
      "SELECT trial, seq, iteration, path, created FROM checkpoints WHERE study = $1 AND "
      "trial = $2 ORDER BY seq, iteration");
  return read_checkpoints(row.bind(1, raw(study)).bind(2, trial));
}

std::vector<EventRecord> StudyStore::events(StudyId study, std::int64_t after) {
  auto& row = database_.prepare(
      "SELECT seq, time, trial, kind, detail FROM events WHERE study = $1 AND seq > $2 "
      "ORDER BY seq");
  return read_events(row.bind(1, raw(study)).bind(2, after));
}

std::vector<EventRecord> StudyStore::events_of(StudyId study, std::int64_t trial) {
  auto& row = database_.prepare(
      "SELECT seq, time, trial, kind, detail FROM events WHERE study = $1 AND trial = $2 "
      "ORDER BY seq");
  return read_events(row.bind(1, raw(study)).bind(2, trial));
}

}  // namespace kolo::store
