// Studies as a whole: removed, renamed, copied. Paths are moved here and not in SQL, because
// databases count the letters of a text in different ways.
#include "store/raw.h"
#include "store/study_store.h"

namespace kolo::store {
namespace {

/// A path inside `from` as the same path inside `to`.
void move_path(std::string& path, const std::string& from, const std::string& to) {
  if (path.starts_with(from + "/")) path = to + path.substr(from.size());
}

}  // namespace

void StudyStore::remove(StudyId study) {
  Transaction change(database_);
  for (const char* table : {"requests", "events", "checkpoints", "reports", "trials"})
    database_.prepare(std::string("DELETE FROM ") + table + " WHERE study = $1")
        .bind(1, raw(study))
        .run();
  database_.prepare("DELETE FROM studies WHERE id = $1").bind(1, raw(study)).run();
  change.commit();
}

void StudyStore::rename(StudyId study, const std::string& name, const std::string& directory) {
  Transaction change(database_);
  const StudyRecord before = at(study);
  StudyBatch moved;
  moved.trials = trials(study);
  moved.checkpoints = checkpoints(study);
  for (auto& trial : moved.trials) move_path(trial.directory, before.directory, directory);
  for (auto& checkpoint : moved.checkpoints)
    move_path(checkpoint.path, before.directory, directory);
  // Paths are keys: the old rows go, new ones are written.
  database_.prepare("DELETE FROM checkpoints WHERE study = $1").bind(1, raw(study)).run();
  write_trials(raw(study), moved);
  write_rest(raw(study), moved);
  try {
    database_.prepare("UPDATE studies SET name = $1, directory = $2 WHERE id = $3")
        .bind(1, name)
        .bind(2, directory)
        .bind(3, raw(study))
        .run();
  } catch (const Error& error) {
    throw_if_taken(error, name);
  }
  change.commit();
}

StudyId StudyStore::copy(StudyId study, const std::string& name, const std::string& directory) {
  Transaction change(database_);
  StudyRecord record = at(study);
  StudyBatch all;
  all.trials = trials(study);
  all.checkpoints = checkpoints(study);
  all.events = events(study);
  each_report(study, [&all](ReportRecord& report) { all.reports.push_back(std::move(report)); });
  for (auto& trial : all.trials) move_path(trial.directory, record.directory, directory);
  for (auto& checkpoint : all.checkpoints) move_path(checkpoint.path, record.directory, directory);
  record.name = name;
  record.directory = directory;
  const StudyId id = insert(record);
  write_trials(raw(id), all);
  write_reports(raw(id), all);
  write_rest(raw(id), all);
  change.commit();
  return id;
}

}  // namespace kolo::store
