// The folder of a database, and reading jobs.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "base/errors.h"
#include "base/files.h"
#include "base/host.h"
#include "base/json.h"
#include "base/log.h"
#include "base/registry.h"
#include "jobs/database/body.h"
#include "jobs/database/fields.h"
#include "jobs/database/name_pattern.h"
#include "jobs/database/network_file_system.h"
#include "jobs/database/schema.h"

namespace kolo::jobs {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSettings = "kolo-jobs.json";

std::unique_ptr<store::Database> connect(
    const std::string& url, bool create,
    std::chrono::milliseconds patience = std::chrono::seconds(20)) {
  return store::open_database(url, {.create = create, .patience = patience});
}

[[noreturn]] void throw_taken(const fs::path& folder) {
  throw_error(ErrorCode::already_exists, "{} already contains a job database", folder.string());
}

/// For a name that nobody else uses, on no host.
std::string own_suffix() {
  static std::atomic<unsigned> serial{0};
  return fmt::format(".{}.{}.{}", host_name(), ::getpid(), serial++);
}

/// The date of a PostgreSQL server, and the time of this machine.
class ServerClock final : public Clock {
 public:
  explicit ServerClock(store::Database& server) : server_(server) {}
  [[nodiscard]] Time now() const override { return system_clock().now(); }
  [[nodiscard]] double date() const override { return server_.date(); }

 private:
  store::Database& server_;
};

void notify_channel(store::Database& store, std::string_view channel) noexcept {
  try {
    store.notify(channel);
  } catch (const std::exception& error) {
    log::info("the channel {} could not be notified: {}", channel, error.what());
  }
}

}  // namespace

void JobDatabase::Body::notify() noexcept { notify_channel(*store, kChannel); }
void JobDatabase::Body::notify_ends() noexcept { notify_channel(*store, kEndsChannel); }

std::int64_t count_up(store::Database& database, std::string_view counter, std::int64_t by) {
  auto& row = database.prepare(
      "UPDATE job_counters SET value = value + $1 WHERE name = $2 RETURNING value");
  row.bind(1, by).bind(2, counter);
  KOLO_CHECK(row.next());
  const std::int64_t value = row.integer(0);
  row.reset();
  return value;
}

int cores_per_node(const Job& job) {
  const std::int64_t threads = std::int64_t{job.ranks_per_node} * job.threads_per_rank;
  const std::int64_t cores =
      (threads + job.threads_per_core - 1) / std::max(1, job.threads_per_core);
  return static_cast<int>(std::clamp<std::int64_t>(cores, 1, std::numeric_limits<int>::max()));
}

Job read_job(const store::Statement& row) {
  Job job;
  job.id = JobId{row.integer(0)};
  job.name = row.text(1);
  job.workflow = row.text(2);
  job.application = row.text(3);
  job.state = static_cast<JobState>(row.integer(4));
  job.created = row.number(5);
  job.retries = static_cast<int>(row.integer(6));
  if (!row.is_null(7)) job.return_code = static_cast<int>(row.integer(7));
  job.launcher = row.integer(8);
  decode_spec(job, row.text(9));
  job.yields = row.integer(10) != 0;
  return job;
}

JobDatabase::JobDatabase(std::unique_ptr<Body> body) : body_(std::move(body)) {}
JobDatabase::JobDatabase(JobDatabase&&) noexcept = default;
JobDatabase& JobDatabase::operator=(JobDatabase&&) noexcept = default;
JobDatabase::~JobDatabase() = default;
const fs::path& JobDatabase::folder() const noexcept { return body_->folder; }

JobDatabase JobDatabase::init(const fs::path& folder, const std::string& url) {
  if (fs::exists(folder / kSettings)) throw_taken(folder);
  fs::path whole = fs::absolute(folder).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  if (fs::exists(whole)) {
    make_in(whole, url);
    return open(folder);
  }
  // Made beside its place and put there as a whole: what cannot be made leaves nothing behind, so
  // that the same command may be tried again, and of two that make the same one wins.
  make_lasting_directories(whole.parent_path());
  fs::path beside = whole;
  beside += own_suffix();
  if (::mkdir(beside.c_str(), 0777) != 0)
    throw_errno("cannot create the folder {}", folder.string());
  try {
    make_in(beside, url);
    if (::rename(beside.c_str(), whole.c_str()) != 0) {
      if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR) throw_taken(folder);
      throw_errno("cannot make {}", whole.string());
    }
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(beside, ignored);
    throw;
  }
  sync_to_disk(whole.parent_path());
  return open(folder);
}

void JobDatabase::make_in(const fs::path& folder, const std::string& url) {
  for (const char* part : {"data", "log", "qsubmit"}) make_lasting_directories(folder / part);
  if (url.empty()) warn_of_network_file_system(folder);
  const std::string where = url.empty() ? (folder / "kolo.db").string() : url;
  store::migrate(*connect(where, true), kRoom, migrations());
  // The URL may hold a password: nobody else's business.
  const Json settings = {{"version", 1}, {"url", url}};
  const fs::path written = folder / (std::string(kSettings) + own_suffix());
  write_file_atomically(written, json_text(settings) + "\n", kPrivateFile);
  // A link, unlike a renaming, does not replace what somebody else has made meanwhile.
  const bool is_new = ::link(written.c_str(), (folder / kSettings).c_str()) == 0;
  const int error = errno;
  ::unlink(written.c_str());
  if (!is_new && error == EEXIST) throw_taken(folder);
  errno = error;
  if (!is_new) throw_errno("cannot make {}", (folder / kSettings).string());
  sync_to_disk(folder);
}

JobDatabase JobDatabase::open(const fs::path& folder, std::chrono::milliseconds patience) {
  auto body = std::make_unique<Body>();
  body->folder = fs::absolute(folder).lexically_normal();
  if (body->folder.filename().empty()) body->folder = body->folder.parent_path();
  std::string text;
  try {
    text = read_file(body->folder / kSettings);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
    throw_error(ErrorCode::not_found,
                "{} does not contain a job database; create one with kolo init {}", folder.string(),
                folder.string());
  }
  const Json settings = parse_json(text, (body->folder / kSettings).string());
  if (const int version = json_field<int>(settings, "version", "the settings"); version != 1)
    throw_error(
        ErrorCode::failed_precondition,
        "the job database {} has version {}, and this kolo reads version 1; use a newer kolo",
        folder.string(), version);
  body->url = json_field<std::string>(settings, "url", "the settings");
  if (body->url.empty()) {
    body->url = (body->folder / "kolo.db").string();
    body->store = connect(body->url, false, patience);
  } else {
    body->store = connect(body->url, true, patience);
  }
  store::migrate(*body->store, kRoom, migrations());
  if (body->store->kind() == "postgresql")
    body->server_clock = std::make_unique<ServerClock>(*body->store);
  body->lease_clock = body->server_clock ? body->server_clock.get() : &system_clock();
  return JobDatabase(std::move(body));
}

fs::path JobDatabase::folder_of(const Job& job) const {
  if (!job.user_workdir.empty()) return job.user_workdir;
  return body_->folder / "data" / job.workflow / fmt::format("{}_{}", job.name, raw(job.id));
}

Job JobDatabase::job(JobId id) {
  auto found = find({.ids = {id}});
  if (found.empty()) throw_error(ErrorCode::not_found, "there is no job {}", raw(id));
  found[0].parents = parents(id);
  return std::move(found[0]);
}

std::vector<Job> JobDatabase::find(const JobFilter& filter) {
  // A text of SQL is kept prepared: there is one per combination of conditions, not per value.
  std::string sql =
      fmt::format("SELECT {} FROM jobs j JOIN job_specs s ON s.id = j.id WHERE 1 = 1", kJobColumns);
  int next = 0;
  if (!filter.ids.empty()) sql += fmt::format(" AND j.id = ${}", ++next);
  if (filter.state) sql += fmt::format(" AND j.state = ${}", ++next);
  const auto kind = body_->store->kind();
  const NamePattern workflow(filter.workflow), name(filter.name);
  if (!workflow.selects_all()) sql += " AND " + workflow.condition(kind, "j.workflow", ++next);
  if (!name.selects_all()) sql += " AND " + name.condition(kind, "j.name", ++next);
  sql += filter.newest_first ? " ORDER BY j.id DESC" : " ORDER BY j.id";
  if (filter.limit >= 0) sql += fmt::format(" LIMIT ${}", ++next);

  std::vector<Job> jobs;
  const auto run = [&](std::optional<JobId> id) {
    auto& row = body_->store->prepare(sql);
    int place = 0;
    if (id) row.bind(++place, raw(*id));
    if (filter.state) row.bind(++place, static_cast<std::int64_t>(*filter.state));
    if (!workflow.selects_all()) row.bind(++place, workflow.bound(kind));
    if (!name.selects_all()) row.bind(++place, name.bound(kind));
    if (filter.limit >= 0) row.bind(++place, filter.limit);
    while (row.next()) jobs.push_back(read_job(row));
  };
  if (filter.ids.empty()) run(std::nullopt);
  for (const JobId id : filter.ids) run(id);
  return jobs;
}

std::vector<StateCount> JobDatabase::count_by_state(std::string_view workflow) {
  const NamePattern pattern{std::string(workflow)};
  std::vector<StateCount> counts;
  auto& row = body_->store->prepare(
      "SELECT workflow, state, COUNT(*) FROM jobs GROUP BY workflow, state "
      "ORDER BY workflow, state");
  while (row.next()) {
    StateCount count{std::string(row.text(0)), static_cast<JobState>(row.integer(1)),
                     row.integer(2)};
    if (pattern.selects(count.workflow)) counts.push_back(std::move(count));
  }
  return counts;
}

std::vector<HistoryEntry> JobDatabase::history(JobId id) {
  std::vector<HistoryEntry> entries;
  auto& row = body_->store->prepare(
      "SELECT state, time, reason FROM job_history WHERE job = $1 ORDER BY seq");
  row.bind(1, raw(id));
  while (row.next())
    entries.push_back(
        {static_cast<JobState>(row.integer(0)), row.number(1), std::string(row.text(2))});
  return entries;
}

std::vector<JobId> JobDatabase::parents(JobId id) {
  std::vector<JobId> ids;
  auto& row =
      body_->store->prepare("SELECT parent FROM job_parents WHERE child = $1 ORDER BY parent");
  row.bind(1, raw(id));
  while (row.next()) ids.push_back(JobId{row.integer(0)});
  return ids;
}

std::vector<JobId> JobDatabase::children(JobId id) {
  std::vector<JobId> ids;
  auto& row =
      body_->store->prepare("SELECT child FROM job_parents WHERE parent = $1 ORDER BY child");
  row.bind(1, raw(id));
  while (row.next()) ids.push_back(JobId{row.integer(0)});
  return ids;
}

}  // namespace kolo::jobs
