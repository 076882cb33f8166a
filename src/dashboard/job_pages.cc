#include "dashboard/job_pages.h"

#include "base/errors.h"
#include "jobs/database/explain.h"
#include "jobs/database/fields.h"
#include "jobs/database/leases.h"
#include "jobs/database/workflow_graph.h"

namespace kolo::dashboard {
namespace {

/// Of a larger workflow, applications are drawn instead of jobs.
constexpr std::int64_t kDrawnJobs = 60;

Json counts_json(const std::vector<jobs::StateCount>& all) {
  Json counts = Json::array();
  for (const auto& count : all)
    counts.push_back({{"workflow", count.workflow},
                      {"state", jobs::to_string(count.state)},
                      {"jobs", count.jobs}});
  return counts;
}

Json launchers_json(jobs::JobDatabase& database) {
  Json all = Json::array();
  for (const auto& launcher : jobs::launchers(database, true))
    all.push_back({{"id", launcher.id},
                   {"host", launcher.host},
                   {"pid", launcher.pid},
                   {"started", launcher.started},
                   {"about", try_parse_json(launcher.about).value_or(Json())}});
  return all;
}

}  // namespace

template <class Work>
auto JobPages::with_jobs(Work work) {
  if (!present())
    throw_error(ErrorCode::failed_precondition,
                "there is no database of jobs here; give its folder with --jobs, or make one with "
                "`kolo init DIR`");
  const MutexLock lock(mutex_);
  try {
    if (!open_) open_.emplace(Open{jobs::JobDatabase::open(folder_)});
    return work(*open_);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unavailable || error.code() == ErrorCode::io) open_.reset();
    throw;
  }
}

Json JobPages::jobs(const std::string& state, std::size_t limit) {
  return with_jobs([&](Open& open) {
    jobs::JobFilter filter;
    if (!state.empty()) filter.state = jobs::parse_state(state);
    filter.newest_first = true;
    filter.limit = static_cast<std::int64_t>(limit);
    const auto& counts = open.counts.of(open.database);
    std::int64_t matching = 0;
    for (const auto& count : counts)
      if (!filter.state || count.state == *filter.state) matching += count.jobs;
    Json rows = Json::array();
    for (const auto& job : open.database.find(filter))
      rows.push_back({{"id", static_cast<std::int64_t>(job.id)},
                      {"name", job.name},
                      {"workflow", job.workflow},
                      {"application", job.application},
                      {"state", jobs::to_string(job.state)},
                      {"created", job.created}});
    return Json{{"jobs", std::move(rows)},
                {"matching", matching},
                {"counts", counts_json(counts)},
                {"launchers", launchers_json(open.database)},
                {"folder", std::filesystem::absolute(open.database.folder()).string()}};
  });
}

Json JobPages::graph(const std::string& workflow) {
  return with_jobs([&](Open& open) {
    const auto graph = jobs::workflow_graph(open.database, workflow, kDrawnJobs);
    Json json{{"grouped", graph.is_grouped}, {"nodes", Json::array()}, {"edges", graph.edges}};
    for (const auto& node : graph.nodes) {
      Json states = Json::object();
      for (const auto& [state, count] : node.states)
        states[std::string(jobs::to_string(state))] = count;
      json["nodes"].push_back({{"label", node.label},
                               {"id", static_cast<std::int64_t>(node.id)},
                               {"states", std::move(states)}});
    }
    return json;
  });
}

Json JobPages::job(std::int64_t id) {
  return with_jobs([&](Open& open) {
    const auto job = open.database.job(jobs::JobId{id});
    Json json{{"id", id},
              {"name", job.name},
              {"state", jobs::to_string(job.state)},
              {"ended", jobs::is_end(job.state)},
              {"fields", jobs::job_json(job)},
              {"explain", jobs::explain(open.database, job.id)},
              {"history", Json::array()},
              {"parents", Json::array()},
              {"children", Json::array()}};
    json["fields"].erase("environ");  // keys and passwords are often there
    for (const auto& entry : open.database.history(job.id))
      json["history"].push_back({{"state", jobs::to_string(entry.state)},
                                 {"time", entry.time},
                                 {"reason", entry.reason}});
    for (const auto parent : open.database.parents(job.id))
      json["parents"].push_back(static_cast<std::int64_t>(parent));
    for (const auto child : open.database.children(job.id))
      json["children"].push_back(static_cast<std::int64_t>(child));
    json["folder"] = open.database.folder_of(job).string();
    return json;
  });
}

std::filesystem::path JobPages::output_of(std::int64_t id) {
  return with_jobs([&](Open& open) {
    const auto job = open.database.job(jobs::JobId{id});
    return open.database.folder_of(job) / (job.name + ".out");
  });
}

std::int64_t JobPages::kill(std::int64_t id) {
  return with_jobs([&](Open& open) {
    static_cast<void>(open.database.job(jobs::JobId{id}));  // throws not_found
    open.counts.forget();
    return open.database.kill({jobs::JobId{id}}, false);
  });
}

std::string JobPages::version() {
  return with_jobs([](Open& open) {
    std::string text = json_text(counts_json(open.counts.of(open.database)));
    for (const auto& launcher : jobs::launchers(open.database, true))
      text += fmt::format(" {}", launcher.id);
    return text;
  });
}

}  // namespace kolo::dashboard
