// A controller is known by host, process number and start time of the process, so that a later
// process with the same number is not taken for it. On the same host a controller counts as gone
// when that process is; on another host, when it has not written for longer than the lease.
//
// write() is the fence: its first statement moves the sequence number from from_seq to to_seq, on
// condition that the study still belongs to this owner and stands at from_seq. If that changes no
// row, the batch was either written before (only the answer was lost), or the study is somebody
// else's.
#include "store/study_store.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "base/errors.h"
#include "base/files.h"
#include "base/host.h"
#include "base/mutex.h"
#include "base/registry.h"
#include "store/raw.h"
#include "store/study_schema.h"

namespace kolo::store {
namespace {

constexpr std::string_view kRequests = "requests";

/// When a process began, in the kernel's ticks: tells it from a later one with its number.
std::optional<std::int64_t> start_of(std::int64_t pid) {
  try {
    const std::string status = read_file(fmt::format("/proc/{}/stat", pid));
    // The name in parentheses may hold anything; the state follows it, and the start is the 20th
    // field after that.
    auto place = status.rfind(')');
    if (status.size() > place + 2 && status[place + 2] == 'Z') return std::nullopt;
    for (int field = 0; field < 20 && place != std::string::npos; ++field)
      place = status.find(' ', place + 1);
    return place == std::string::npos ? std::nullopt
                                      : std::optional(std::stoll(status.substr(place + 1)));
  } catch (const Error&) {
    return std::nullopt;
  }
}

constexpr std::string_view kStudyColumns =
    "id, name, directory, spec, status, created, elapsed, seq, logged, first_name";

StudyRecord read_study(const Statement& row) {
  StudyRecord study;
  study.id = StudyId{row.integer(0)};
  study.name = row.text(1);
  study.directory = row.text(2);
  study.spec = row.text(3);
  study.status = static_cast<StudyStatus>(row.integer(4));
  study.created = row.number(5);
  study.elapsed = row.number(6);
  study.seq = row.integer(7);
  study.logged = row.integer(8);
  study.first_name = row.text(9);
  return study;
}

/// The owners in this process that hold a study. A row may name one that could not let go, because
/// the database failed.
class HoldersHere {
 public:
  void add(const std::string& owner) {
    const MutexLock lock(mutex_);
    owners_.insert(owner);
  }
  void remove(const std::string& owner) {
    const MutexLock lock(mutex_);
    owners_.erase(owner);
  }
  bool has(std::string_view owner) {
    const MutexLock lock(mutex_);
    return owners_.contains(owner);
  }

 private:
  Mutex mutex_;
  std::set<std::string, std::less<>> owners_ KOLO_GUARDED_BY(mutex_);
};
HoldersHere& holders_here() {
  static HoldersHere all;
  return all;
}

}  // namespace

StudyStore::StudyStore(Database& database) : database_(database) {
  static std::atomic<int> serial{0};
  owner_ = fmt::format("{} {} {} {}", host_identity(), ::getpid(), start_of(::getpid()).value_or(0),
                       serial++);
  migrate(database_, kStudyRoom, study_migrations());
}

StudyId StudyStore::create(const StudyRecord& study) {
  Transaction change(database_);
  const StudyId id = insert(study);
  change.commit();
  return id;
}

StudyId StudyStore::insert(const StudyRecord& study) {
  auto& highest = database_.prepare("SELECT COALESCE(MAX(id), 0) FROM studies");
  highest.next();
  const std::int64_t id = highest.integer(0) + 1;
  highest.reset();
  try {
    database_
        .prepare(
            "INSERT INTO studies (id, name, first_name, directory, spec, status, created, elapsed, "
            "seq, logged) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)")
        .bind(1, id)
        .bind(2, study.name)
        .bind(3, study.first_name.empty() ? study.name : study.first_name)
        .bind(4, study.directory)
        .bind(5, study.spec)
        .bind(6, static_cast<std::int64_t>(study.status))
        .bind(7, study.created)
        .bind(8, study.elapsed)
        .bind(9, study.seq)
        .bind(10, study.logged)
        .run();
  } catch (const Error& error) {
    throw_if_taken(error, study.name);
  }
  return StudyId{id};
}

void StudyStore::throw_if_taken(const Error& error, const std::string& name) const {
  if (error.code() != ErrorCode::already_exists) throw error;
  throw_error(ErrorCode::already_exists,
              "a study '{}' already exists in {}; choose another name, or resume it", name,
              database_.name());
}

std::vector<StudyRecord> StudyStore::studies() {
  std::vector<StudyRecord> all;
  auto& rows = database_.prepare(fmt::format("SELECT {} FROM studies ORDER BY id", kStudyColumns));
  while (rows.next()) all.push_back(read_study(rows));
  return all;
}

std::vector<StudyMark> StudyStore::marks() {
  std::vector<StudyMark> all;
  auto& row = database_.prepare("SELECT name, seq, status, owner FROM studies ORDER BY name");
  while (row.next())
    all.push_back({.name = std::string(row.text(0)),
                   .seq = row.integer(1),
                   .status = static_cast<StudyStatus>(row.integer(2)),
                   .held = !row.is_null(3)});
  return all;
}

std::optional<StudyRecord> StudyStore::find(std::string_view name) {
  auto& row =
      database_.prepare(fmt::format("SELECT {} FROM studies WHERE name = $1", kStudyColumns));
  row.bind(1, name);
  std::optional<StudyRecord> found;
  if (row.next()) found = read_study(row);
  row.reset();
  return found;
}

StudyRecord StudyStore::at(std::string_view name) {
  if (auto found = find(name)) return *found;
  const auto all = studies();
  std::vector<std::string_view> names;
  for (const auto& study : all) names.push_back(study.name);
  throw_unknown_name("study", name, names);
}

StudyRecord StudyStore::at(StudyId study) {
  auto& row = database_.prepare(fmt::format("SELECT {} FROM studies WHERE id = $1", kStudyColumns));
  row.bind(1, raw(study));
  if (!row.next()) throw_error(ErrorCode::not_found, "the study is not there any more");
  StudyRecord found = read_study(row);
  row.reset();
  return found;
}

double StudyStore::lease_date() {
  constexpr auto kReadAgain = std::chrono::minutes(10);
  const auto now = std::chrono::steady_clock::now();
  if (!date_ || now - date_->first > kReadAgain) date_ = {now, database_.date()};
  return date_->second + std::chrono::duration<double>(now - date_->first).count();
}

std::optional<Holder> StudyStore::holder(StudyId study, double now) {
  auto& row = database_.prepare(
      "SELECT owner, owner_host, owner_pid, owner_started, heard FROM studies WHERE id = $1");
  row.bind(1, raw(study));
  std::optional<Holder> found;
  if (row.next() && !row.is_null(0)) {
    const Holder holder{std::string(row.text(1)), row.integer(2), row.number(4)};
    const bool is_own = holder.pid == ::getpid();
    const bool gone = holder.host != host_identity()
                          ? now - holder.heard > kLeaseSeconds
                          : start_of(holder.pid) != row.integer(3) ||
                                (is_own && !holders_here().has(row.text(0)));
    if (!gone) found = holder;
  }
  row.reset();
  return found;
}

std::optional<Holder> StudyStore::holder_elsewhere(StudyId study) {
  auto& row = database_.prepare(
      "SELECT owner_host, owner_pid, heard FROM studies WHERE id = $1 AND owner IS NOT NULL");
  row.bind(1, raw(study));
  std::optional<Holder> found;
  if (row.next() && row.text(0) != host_identity())
    found = Holder{std::string(row.text(0)), row.integer(1), row.number(2)};
  row.reset();
  return found;
}

void StudyStore::claim(StudyId study, double now) {
  Transaction change(database_);
  if (auto other = holder(study, now)) {
    const std::string host = other->host.substr(0, other->host.find(' '));
    throw_error(ErrorCode::failed_precondition,
                "the study is already running: process {} on {} controls it; `kolo stop` ends it",
                other->pid, host);
  }
  database_
      .prepare(
          "UPDATE studies SET owner = $1, owner_host = $2, owner_pid = $3, owner_started = $4, "
          "heard = $5 WHERE id = $6")
      .bind(1, owner_)
      .bind(2, host_identity())
      .bind(3, std::int64_t{::getpid()})
      .bind(4, start_of(::getpid()).value_or(0))
      .bind(5, now)
      .bind(6, raw(study))
      .run();
  change.commit();
  holders_here().add(owner_);
}

void StudyStore::release(StudyId study) noexcept {
  holders_here().remove(owner_);
  try {
    database_.prepare("UPDATE studies SET owner = NULL WHERE id = $1 AND owner = $2")
        .bind(1, raw(study))
        .bind(2, owner_)
        .run();
  } catch (const std::exception&) {
    // The row still names this process, whose later claims know better.
  }
}

void StudyStore::write(StudyId study, const StudyBatch& batch) {
  Transaction change(database_);
  auto& step = database_.prepare(
      "UPDATE studies SET seq = $1, elapsed = $2, heard = $3, logged = $4 "
      "WHERE id = $5 AND owner = $6 AND seq = $7");
  step.bind(1, batch.to_seq).bind(2, batch.elapsed).bind(3, batch.now).bind(4, batch.logged);
  step.bind(5, raw(study)).bind(6, owner_).bind(7, batch.from_seq);
  if (step.run() == 0) {
    auto& row = database_.prepare("SELECT owner, seq FROM studies WHERE id = $1");
    row.bind(1, raw(study));
    const bool there = row.next();
    const bool ours = there && row.text(0) == owner_;
    const bool written = ours && row.integer(1) == batch.to_seq;
    row.reset();
    if (written) return;  // an earlier try arrived, only its answer did not
    throw_error(ErrorCode::failed_precondition, "{}",
                ours ? "the journal of the study was changed by another process"
                     : "another controller has taken over the study");
  }
  write_trials(raw(study), batch);
  write_reports(raw(study), batch);
  write_rest(raw(study), batch);
  change.commit();
}

void StudyStore::request(StudyId study, std::string_view kind, std::optional<std::int64_t> trial) {
  {
    Transaction change(database_);
    database_
        .prepare(
            "INSERT INTO requests (study, number, kind, trial) VALUES ($1, (SELECT "
            "COALESCE(MAX(number), 0) + 1 FROM requests), $2, $3)")
        .bind(1, raw(study))
        .bind(2, kind)
        .bind(3, trial)
        .run();
    change.commit();
  }
  database_.notify(kRequests);
}

std::vector<RequestRecord> StudyStore::requests(StudyId study) {
  std::vector<RequestRecord> all;
  auto& row = database_.prepare(
      "SELECT number, kind, trial FROM requests WHERE study = $1 ORDER BY number");
  row.bind(1, raw(study));
  while (row.next()) {
    RequestRecord request{row.integer(0), std::string(row.text(1)), std::nullopt};
    if (!row.is_null(2)) request.trial = row.integer(2);
    all.push_back(std::move(request));
  }
  return all;
}

std::unique_ptr<Watch> StudyStore::watch_requests() { return database_.watch(kRequests); }

}  // namespace kolo::store
