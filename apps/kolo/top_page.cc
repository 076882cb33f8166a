#include "top_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/errors.h"
#include "base/json.h"
#include "base/plural.h"
#include "base/text_table.h"
#include "jobs/database/leases.h"
#include "jobs_database.h"
#include "study_store.h"
#include "tune/output/studies_table.h"
#include "tune/protocol/value_text.h"
#include "tune/study/study_reader.h"
#include "tune/trial/trial_names.h"

namespace kolo::app {
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Jobs that are shown one by one.
constexpr std::int64_t kMostJobs = 200;

/// Studies under way come first, and then the latest.
TopSection studies_section(store::StudyStore& store) {
  const auto table = tune::studies_table(store);
  Rows running, others;
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    for (const auto& cell : row) cells.push_back(cell_text(cell));
    (cells[1] == "running" ? running : others).push_back(std::move(cells));
  }
  const auto at_work = static_cast<std::int64_t>(running.size());
  Rows rows{table.columns};
  rows.insert(rows.end(), running.rbegin(), running.rend());
  rows.insert(rows.end(), others.rbegin(), others.rend());
  const auto all = std::ssize(rows) - 1;
  return {fmt::format("{} {}, {} running", all, all == 1 ? "study" : "studies", at_work),
          std::move(rows)};
}

/// The trials that run, of the studies under way.
TopSection trials_section(store::StudyStore& store) {
  Rows rows{{"study", "trial", "iteration", "seconds", "last report"}};
  for (const auto& study : store.studies()) {
    if (tune::state_of(store, study) != "running") continue;
    std::map<std::int64_t, std::string> last;
    for (const auto& report : store.last_reports(study.id)) last[report.trial] = report.metrics;
    for (const auto& trial : store.trials(study.id)) {
      if (trial.status != store::TrialStatus::running) continue;
      const auto report = last.find(trial.number);
      rows.push_back(
          {study.name, tune::trial_id(study.first_name, study.created, trial.number),
           std::to_string(trial.iteration), short_number(trial.seconds),
           report == last.end() ? "-" : short_text(tune::decode(report->second, "a report"))});
    }
  }
  return {fmt::format("{} running", counted(std::ssize(rows) - 1, "trial")), std::move(rows)};
}

TopSection launchers_section(jobs::JobDatabase& database, const std::vector<jobs::Job>& running) {
  Rows rows{{"launcher", "host", "nodes", "cores", "gpus", "mode", "workflow", "running"}};
  for (const auto& launcher : jobs::launchers(database, /*alive_only=*/true)) {
    const Json about = try_parse_json(launcher.about).value_or(Json::object());
    const auto field = [&about](const char* name) {
      const Json value = about.value(name, Json());
      return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : json_text(value);
    };
    const auto held = std::count_if(running.begin(), running.end(), [&](const jobs::Job& job) {
      return job.launcher == launcher.id;
    });
    const std::string workflow = field("workflow");
    rows.push_back({std::to_string(launcher.id), launcher.host, field("nodes"), field("cores"),
                    field("gpus"), field("mode"), workflow.empty() ? "all" : workflow,
                    std::to_string(held)});
  }
  return {counted(std::ssize(rows) - 1, "launcher"), std::move(rows)};
}

TopSection workflows_section(jobs::JobDatabase& database) {
  std::map<std::string, std::map<jobs::JobState, std::int64_t>> counts;
  std::int64_t all = 0;
  for (const auto& count : database.count_by_state()) {
    counts[count.workflow][count.state] += count.jobs;
    all += count.jobs;
  }
  Rows rows{{"workflow", "waiting", "running", "finished", "failed", "killed"}};
  for (const auto& [workflow, states] : counts) {
    std::int64_t waiting = 0;
    const auto number = [&states = states](jobs::JobState state) {
      const auto found = states.find(state);
      return found == states.end() ? std::int64_t{0} : found->second;
    };
    for (const auto& [state, jobs] : states)
      if (!jobs::is_end(state) && state != jobs::JobState::running) waiting += jobs;
    rows.push_back({workflow, std::to_string(waiting),
                    std::to_string(number(jobs::JobState::running)),
                    std::to_string(number(jobs::JobState::job_finished)),
                    std::to_string(number(jobs::JobState::failed)),
                    std::to_string(number(jobs::JobState::user_killed))});
  }
  return {counted(all, "job"), std::move(rows)};
}

TopSection jobs_section(const std::vector<jobs::Job>& running) {
  Rows rows{{"job", "name", "workflow", "application", "launcher"}};
  for (const auto& job : running)
    rows.push_back({std::to_string(number_of(job.id)), job.name, job.workflow, job.application,
                    std::to_string(job.launcher)});
  return {fmt::format("{}{} running", running.size() == kMostJobs ? "at least " : "",
                      counted(std::ssize(running), "job")),
          std::move(rows)};
}

/// Adds what `read` adds; where a database fails, the reason instead.
template <class Read>
void add(std::vector<TopSection>& sections, Read&& read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) sections.push_back({error.message()});
  }
}

}  // namespace

std::vector<TopSection> top_sections(const std::string& storage) {
  std::vector<TopSection> sections;
  add(sections, [&] {
    const OpenStore open(storage);
    sections.push_back(studies_section(*open.store));
    sections.push_back(trials_section(*open.store));
  });
  add(sections, [&] {
    if (jobs_folder().empty()) return;
    auto database = open_jobs();
    const auto running = database.find({.state = jobs::JobState::running, .limit = kMostJobs});
    sections.push_back(launchers_section(database, running));
    sections.push_back(workflows_section(database));
    sections.push_back(jobs_section(running));
  });
  if (sections.empty())
    sections.push_back(
        {"there are no studies and no jobs here; `kolo tune` and `kolo init` begin"});
  return sections;
}

std::vector<std::string> top_page(const std::vector<TopSection>& sections, std::size_t width,
                                  std::size_t height) {
  // What each section shows: first nothing but its title, then row by row in turn.
  std::vector<std::size_t> shown(sections.size(), 0);
  std::size_t left = height > 2 * sections.size() ? height - 2 * sections.size() : 0;
  for (bool any = true; any && left > 0;) {
    any = false;
    for (std::size_t i = 0; i < sections.size() && left > 0; ++i) {
      if (shown[i] >= sections[i].rows.size()) continue;
      ++shown[i];
      --left;
      any = true;
    }
  }
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const auto& [title, rows] = sections[i];
    const std::size_t more = rows.size() - shown[i];
    lines.push_back(shortened(
        more > 0 && shown[i] > 0 ? fmt::format("{}; … {} more", title, more) : title, width));
    const Rows part(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(shown[i]));
    const std::string text = text_table(part, {.width = width, .indent = width > 2 ? 2U : 0U});
    for (std::size_t at = 0; at < text.size();) {
      const auto end = std::min(text.find('\n', at), text.size());
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    if (i + 1 < sections.size()) lines.emplace_back();
  }
  if (lines.size() > height) lines.resize(height);
  // Names are whatever users chose: none may move the cursor.
  for (auto& line : lines)
    std::replace_if(
        line.begin(), line.end(), [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, '?');
  return lines;
}

}  // namespace kolo::app
