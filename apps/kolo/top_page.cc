// Each source is read on its own, and its error becomes a section, so that one database that does
// not answer hides nothing else. Studies are followed incrementally: an index is kept for each
// study, and only what is new is read. All studies share one deadline, but each makes at least one
// step, so that a large study cannot keep the others from being read. top_page() gives out lines in
// rounds, one row for each section, so that a long section cannot push out a short one. Control
// characters are replaced at the end, because names could otherwise move the cursor.
#include "top_page.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/errors.h"
#include "base/json.h"
#include "base/plural.h"
#include "base/text_table.h"
#include "jobs/database/leases.h"
#include "jobs_database.h"
#include "launch/run_board.h"
#include "study_store.h"
#include "tune/output/studies_table.h"
#include "tune/protocol/value_text.h"
#include "tune/study/study_reader.h"
#include "tune/trial/trial_names.h"

namespace kolo::app {
namespace {

using tune::Value;
using Rows = std::vector<std::vector<std::string>>;

/// Jobs that are shown one by one.
constexpr std::int64_t kMostJobs = 200;

std::string number_text(double value) { return value > 0 ? fmt::format("{:.1f}", value) : ""; }

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t kMost = 4;
  const std::vector<int> some(
      ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, ranks.size())));
  return fmt::format("{}{}", fmt::join(some, ", "), ranks.size() > kMost ? ", …" : "");
}

/// The runs of `kolo run`. Ranks do the same steps, so the first of them speaks for all.
TopSection runs_section(const std::vector<Json>& runs) {
  Rows rows{{"run", "program", "ranks", "hosts", "steps/s", "operations/s", "who waits"}};
  for (const auto& run : runs) {
    const Json ranks = run.value("ranks", Json::array());
    std::set<std::string> hosts;
    for (const auto& rank : ranks) hosts.insert(rank.value("host", ""));
    const Json first = ranks.empty() ? Json::object() : ranks.front();
    const auto [waiting, awaited] = launch::who_waits(run);
    rows.push_back({std::to_string(run.value("pid", 0)), run.value("program", ""),
                    std::to_string(ranks.size()), fmt::format("{}", fmt::join(hosts, ",")),
                    number_text(first.value("steps_per_s", 0.0)),
                    number_text(first.value("operations_per_s", 0.0)),
                    waiting.empty()
                        ? ""
                        : fmt::format("{} for {}", ranks_text(waiting), ranks_text(awaited))});
  }
  return {counted(std::ssize(rows) - 1, "run"), std::move(rows)};
}

TopSection hosts_section(const Json& cluster) {
  Rows rows{{"host", "state", "slots", "free", "load", "memory free", "used by"}};
  for (const auto& host : cluster.at("hosts")) {
    if (host.at("state") == "lost") {
      rows.push_back({host.at("host"), "lost", "", "", "", "", host.at("error")});
      continue;
    }
    std::string used;
    for (const auto& held : host.at("held"))
      used += (used.empty() ? "" : "; ") + held.at("owner").get<std::string>();
    const bool is_measured = host.contains("load");
    rows.push_back({host.at("host"), host.at("state"), json_text(host.at("total").at("slots")),
                    json_text(host.at("free").at("slots")),
                    is_measured ? fmt::format("{:.2f}", host.at("load").get<double>()) : "",
                    is_measured
                        ? fmt::format("{:.1f} GB", host.at("available_bytes").get<double>() / 1e9)
                        : "",
                    used});
  }
  return {fmt::format("cluster {}: {}", cluster.at("cluster").get<std::string>(),
                      counted(std::ssize(rows) - 1, "host")),
          std::move(rows)};
}

TopSection launchers_section(jobs::JobDatabase& database, const std::vector<jobs::Job>& running) {
  Rows rows{{"launcher", "host", "nodes", "cores", "gpus", "mode", "workflow", "running"}};
  for (const auto& launcher : jobs::launchers(database, /*alive_only=*/true)) {
    const Json about = try_parse_json(launcher.about).value_or(Json::object());
    const auto field = [&about](const char* name) {
      const Json value = about.is_object() ? about.value(name, Json()) : Json();
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

TopReader::TopReader(std::string storage) : storage_(std::move(storage)) {}

void TopReader::follow(store::StudyStore& store, std::chrono::milliseconds patience) {
  std::map<store::StudyId, dashboard::StudyIndex> now;
  const Deadline deadline = Deadline::after(patience);
  for (auto& study : store.studies()) {
    const auto id = study.id;
    const auto known = studies_.find(id);
    const bool is_same = known != studies_.end() && known->second.study().name == study.name;
    auto& index = now.emplace(id, is_same ? std::move(known->second)
                                          : dashboard::StudyIndex(std::move(study)))
                      .first->second;
    index.follow(store, deadline);
  }
  studies_ = std::move(now);
}

/// Studies under way come first, and then the latest.
TopSection TopReader::studies_section(store::StudyStore& store) const {
  Rows running, others;
  bool is_complete = true;
  for (const auto& [id, index] : studies_) {
    is_complete = is_complete && index.complete();
    std::vector<std::string> cells;
    for (const auto& cell : tune::studies_row(store, index.study(), index.counts()))
      cells.push_back(cell_text(cell));
    (cells[1] == "running" ? running : others).push_back(std::move(cells));
  }
  const auto at_work = running.size();
  Rows rows{tune::empty_studies_table().columns};
  rows.insert(rows.end(), running.rbegin(), running.rend());
  rows.insert(rows.end(), others.rbegin(), others.rend());
  const auto all = std::ssize(rows) - 1;
  return {fmt::format("{} {}, {} running{}", all, all == 1 ? "study" : "studies", at_work,
                      is_complete ? "" : "; still reading"),
          std::move(rows)};
}

/// The trials that run, of the studies under way.
TopSection TopReader::trials_section(store::StudyStore& store) const {
  Rows rows{{"study", "trial", "iteration", "seconds", "last report"}};
  for (const auto& [id, index] : studies_) {
    if (tune::state_of(store, index.study()) != "running") continue;
    for (const auto number : index.running()) {
      const auto facts = index.facts(number);
      Value::Dict last = facts.metrics;
      for (const char* name : {"status", "training_iteration", "time_total_s"}) last.erase(name);
      rows.push_back({index.study().name, facts.id, std::to_string(facts.iterations),
                      short_number(facts.seconds), last.empty() ? "-" : short_text(Value(last))});
    }
  }
  return {fmt::format("{} running", counted(std::ssize(rows) - 1, "trial")), std::move(rows)};
}

void TopReader::add_hosts(std::vector<TopSection>& sections) {
  if (!hosts_ && cluster::cluster_names().empty()) return;
  if (!hosts_) hosts_ = std::make_unique<cluster::HostWatch>(cluster::owner_name("kolo top"));
  for (const auto& cluster : hosts_->clusters()) sections.push_back(hosts_section(cluster));
}

std::vector<TopSection> TopReader::sections(std::chrono::milliseconds patience) {
  std::vector<TopSection> sections;
  add(sections, [&] {
    const OpenStore open(storage_);
    follow(*open.store, patience);
    sections.push_back(studies_section(*open.store));
    sections.push_back(trials_section(*open.store));
  });
  add(sections, [&] {
    if (const auto runs = launch::runs_under_way(); !runs.empty())
      sections.push_back(runs_section(runs));
  });
  add(sections, [&] {
    if (jobs_folder().empty()) return;
    auto database = open_jobs();
    const auto running = database.find({.state = jobs::JobState::running, .limit = kMostJobs});
    sections.push_back(launchers_section(database, running));
    sections.push_back(workflows_section(database));
    sections.push_back(jobs_section(running));
  });
  add(sections, [&] { add_hosts(sections); });
  if (sections.empty())
    sections.push_back(
        {"there are no studies, runs, jobs and clusters here; `kolo tune`, `kolo run`, "
         "`kolo init` and `kolo up` begin"});
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
