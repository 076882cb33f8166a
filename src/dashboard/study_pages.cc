// A question holds mutex_ and then the lock of its study, always in this order. It reads what is
// new for at most kAnswerWithin; what remains is left to the reader thread, which has its own
// connection and holds the study for kReadStep at a time. So an answer waits only shortly, but may
// be incomplete at first. Expensive results (curves, importance) are kept with the iteration or the
// number of trials that they were made of. Importance and the JSON of all drawn trials are computed
// without locks, so that small questions do not wait for them.
#include "dashboard/study_pages.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "base/log.h"
#include "base/signals_blocked.h"
#include "kolo/search/sampler.h"
#include "search/space/json_value.h"
#include "tune/output/studies_table.h"
#include "tune/output/study_json.h"
#include "tune/study/study_reader.h"
#include "tune/study/study_requests.h"

namespace kolo::dashboard {
namespace {

using namespace std::chrono_literals;

// What a page draws is bounded, however large the study is.
constexpr std::size_t kDrawnTrials = 500;
constexpr std::size_t kDrawnCurves = 200;
constexpr std::size_t kCurvePoints = 100;
constexpr std::size_t kKeptCurves = 5000;
constexpr std::size_t kTrialPoints = 1000;
constexpr std::size_t kWeighedTrials = 2000;
/// In memory, of all studies together.
constexpr std::size_t kKeptTrials = 2'000'000;

/// An answer does not wait longer for a study that has not been read yet.
constexpr auto kAnswerWithin = 100ms;
/// Nor does it wait longer for the thread that reads it.
constexpr auto kReadStep = 20ms;
constexpr auto kTellEvery = 1s;

Json json_of(const tune::Value& value) {
  const bool odd = value.is_number() && !std::isfinite(value.as_number());
  return odd ? Json(value.to_string()) : search::json_from_value(value);
}

Json json_of(const tune::Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json cells = Json::array();
    for (const auto& cell : row) cells.push_back(json_of(cell));
    rows.push_back(std::move(cells));
  }
  return {{"columns", table.columns}, {"rows", std::move(rows)}};
}

/// What `kolo list samplers` says; "" for a sampler of the user's own.
std::string summary_of_search(const std::string& name) {
  for (const auto& sampler : search::samplers())
    if (sampler.name == name) return std::string(sampler.summary);
  return {};
}

/// Goes on reading. Of a study that cannot be read nothing is kept, or half of it would be shown as
/// if it were all.
bool follow(StudyIndex& index, store::StudyStore& store, Deadline deadline) {
  try {
    return index.follow(store, deadline);
  } catch (const Error& error) {
    if (tune::is_of_one_study(error)) index = StudyIndex(index.study());
    throw;
  }
}

}  // namespace

struct StudyPages::Open {
  explicit Open(const std::string& url)
      : database(store::open_database(url, {.create = false})), store(*database) {}
  std::unique_ptr<store::Database> database;
  store::StudyStore store;
};

StudyPages::StudyPages(std::string storage_url, std::function<void(const std::string&)> more_read)
    : url_(std::move(storage_url)), more_read_(std::move(more_read)) {
  const SignalsBlocked signals_blocked;
  reader_ = std::thread([this] { read_on(); });
}

StudyPages::~StudyPages() {
  {
    const MutexLock lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  reader_.join();
}

template <class Work>
auto StudyPages::with_store(Work work) {
  const MutexLock lock(mutex_);
  try {
    if (!open_) open_ = std::make_shared<Open>(url_);
    return work(open_->store);
  } catch (const Error& error) {
    // A server that went away comes back under a new connection.
    if (error.code() == ErrorCode::unavailable || error.code() == ErrorCode::io) open_.reset();
    throw;
  }
}

std::shared_ptr<StudyPages::Kept> StudyPages::kept(const store::StudyRecord& study) {
  std::shared_ptr<Kept> found;
  std::size_t trials = 0;
  for (auto one = kept_.begin(); one != kept_.end();) {
    Kept& candidate = **one;
    const MutexLock lock(candidate.mutex);
    const auto& index = candidate.known.index;
    const bool same = candidate.id == study.id;
    if (same && index.study().name == study.name) found = *one;
    if (!same) trials += index.size();
    // Of those that are too large together, the ones that were looked at last stay.
    one = same || trials > kKeptTrials ? kept_.erase(one) : std::next(one);
  }
  if (!found) found = std::make_shared<Kept>(study);
  kept_.push_front(found);
  return found;
}

template <class Work>
auto StudyPages::with_index(const std::string& name, Work work) {
  return with_store([&](store::StudyStore& store) KOLO_REQUIRES(mutex_) {
    const auto found = kept(store.at(name));
    Kept& study = *found;
    const MutexLock lock(study.mutex);
    const bool being_read = std::find(unread_.begin(), unread_.end(), found) != unread_.end();
    if (!being_read && !follow(study.known.index, store, Deadline::after(kAnswerWithin))) {
      unread_.push_back(found);
      changed_.notify_all();
    }
    return work(store, study.known);
  });
}

/// Reads large studies to their end, by a connection of its own, so that questions are answered
/// meanwhile: who asks holds mutex_, which is needed here before the next step.
void StudyPages::read_on() {
  std::unique_ptr<Open> open;
  auto told = std::chrono::steady_clock::now();
  for (;;) {
    std::shared_ptr<Kept> next;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, [this]() KOLO_REQUIRES(mutex_) { return over_ || !unread_.empty(); });
      if (over_) return;
      next = unread_.front();
    }
    Kept& study = *next;
    bool done = true;
    std::string name;
    try {
      if (!open) open = std::make_unique<Open>(url_);
      const MutexLock lock(study.mutex);
      name = study.known.index.study().name;
      done = follow(study.known.index, open->store, Deadline::after(kReadStep));
    } catch (const std::exception& error) {  // the next question begins where it stood
      log::debug("dashboard: {}", error.what());
      open.reset();
    }
    const auto now = std::chrono::steady_clock::now();
    if (done || now - told > kTellEvery) {
      told = now;
      more_read_(name);
    }
    if (done) {
      const MutexLock lock(mutex_);
      unread_.pop_front();
    }
  }
}

Json StudyPages::studies() try {
  std::vector<store::StudyRecord> all;
  with_store([&](store::StudyStore& store) {
    all = store.studies();
    return 0;
  });
  tune::Table table = tune::empty_studies_table();
  Json planned = Json::array();
  for (const auto& study : all) {
    try {
      with_index(study.name, [&](store::StudyStore& store, Known& known) {
        table.rows.push_back(tune::studies_row(store, study, known.index.counts()));
        planned.push_back(known.index.spec().num_samples);
        return 0;
      });
    } catch (const Error& error) {
      if (error.code() == ErrorCode::not_found) continue;  // removed meanwhile
      if (!tune::is_of_one_study(error)) throw;
      const MutexLock lock(mutex_);
      if (unreadable_.insert(study.id).second)
        log::warning("the study {} is left out, because it cannot be read: {}", study.name,
                     error.message());
    }
  }
  Json json = json_of(table);
  json["planned"] = std::move(planned);
  return json;
} catch (const Error& error) {
  if (error.code() != ErrorCode::not_found) throw;
  return {{"columns", Json::array()}, {"rows", Json::array()}};  // before the first study
}

Json StudyPages::summary_of(store::StudyStore& store, const Known& known) {
  const auto& index = known.index;
  const auto study = store.at(index.study().name);
  Json json = tune::study_json(study, index.spec(), index.metrics());
  json["state"] = std::string(tune::state_of(store, study));
  json["planned"] = index.spec().num_samples;
  json["seq"] = study.seq;
  json["counts"] = index.by_status();
  json["early"] = index.stopped_early();
  json["total"] =
      index.complete() ? static_cast<std::int64_t>(index.size()) : store.trial_count(study.id);
  json["read"] = index.size();
  json["best"] = nullptr;
  if (const auto best = index.best())
    json["best"] = tune::trial_json(index.facts(*best), index.spec(), index.metrics());
  return json;
}

Json StudyPages::summary(const std::string& name) {
  return with_index(
      name, [](store::StudyStore& store, Known& known) { return summary_of(store, known); });
}

Json StudyPages::study(const std::string& name, const std::string& filter) {
  std::vector<tune::TrialFacts> trials;
  tune::StudySpec spec;
  Json json = with_index(name, [&](store::StudyStore& store, Known& known) {
    const auto matching = known.index.matching(filter);
    for (const std::int64_t number : known.index.chosen(matching, kDrawnTrials))
      trials.push_back(known.index.facts(number));
    spec = known.index.spec();
    Json summary = summary_of(store, known);
    summary["matching"] = matching.size();
    return summary;
  });
  // Without the lock: a summary, which is to be on the page at once, does not wait for all of this.
  const auto metrics = json["metrics"].get<std::vector<std::string>>();
  json["trials"] = Json::array();
  for (auto& facts : trials) {
    facts.error = facts.error.substr(0, facts.error.find('\n'));
    json["trials"].push_back(tune::trial_json(facts, spec, metrics));
  }
  return json;
}

Json StudyPages::trials(const TrialsQuestion& question) {
  return with_index(question.study, [&](store::StudyStore&, Known& known) {
    const auto answer = known.index.trials(question);
    Json json = json_of(answer.rows);
    json["matching"] = answer.matching;
    json["offset"] = answer.offset;
    return json;
  });
}

Json StudyPages::curves(const std::string& name, const std::string& metric,
                        const std::string& filter) {
  return with_index(name, [&](store::StudyStore& store, Known& known) {
    Json curves = Json::object();
    if (known.curves.size() > kKeptCurves) known.curves.clear();
    const auto matching = known.index.matching(filter);
    for (const std::int64_t number : known.index.chosen(matching, kDrawnCurves)) {
      auto& [iteration, curve] = known.curves[fmt::format("{} {}", number, metric)];
      if (const auto now = known.index.iteration(number); curve.is_null() || iteration != now) {
        curve = tune::curve_json(store.reports_of(known.index.study().id, number), metric,
                                 kCurvePoints);
        iteration = now;
      }
      curves[std::to_string(number)] = curve;
    }
    return curves;
  });
}

/// Of very many trials, some: the shares do not change much with more.
Json StudyPages::importance(const std::string& name) {
  tune::TrialsRead read;
  tune::StudySpec spec;
  std::size_t weighed = 0;
  Json shares = with_index(name, [&](store::StudyStore& store, Known& known) -> Json {
    weighed = static_cast<std::size_t>(known.index.counts().done);
    if (!known.importance.is_null() && known.weighed == weighed) return known.importance;
    const auto numbers = known.index.ended(kWeighedTrials);
    read = tune::read_trials(store, known.index.study(), numbers);
    spec = known.index.spec();
    return {};
  });
  if (!shares.is_null()) return shares;
  shares =
      tune::importance_json(spec, read.records, read.trials);  // for a second, without the lock
  return with_index(name, [&](store::StudyStore&, Known& known) {
    known.weighed = weighed;
    return known.importance = std::move(shares);
  });
}

Json StudyPages::trial(const std::string& name, std::int64_t number) {
  const auto metrics =
      with_index(name, [](store::StudyStore&, Known& known) { return known.index.metrics(); });
  return with_store([&](store::StudyStore& store) {
    const auto data = tune::read_trial_data(store, name, number);
    const auto& trial = data.trials.front();
    Json json = tune::trial_json(tune::facts_of(data, 0, metrics), data.spec, metrics);
    json["files"] = tune::files_json(trial);
    json["study"] = tune::study_json(data.study, data.spec, metrics);
    json["directory"] = trial.directory.string();
    json["failures"] = trial.failures;
    json["curves"] = Json::object();
    for (const auto& metric : metrics)
      json["curves"][metric] = tune::curve_json(trial, metric, kTrialPoints);
    json["checkpoints"] = Json::array();
    for (const auto& checkpoint : trial.checkpoints)
      json["checkpoints"].push_back(
          {{"path", checkpoint.path.string()}, {"iteration", checkpoint.iteration}});
    json["events"] = Json::array();
    for (const auto& event : data.events.front())
      json["events"].push_back(
          {{"time", event.time}, {"kind", event.kind}, {"detail", event.detail}});
    json["decisions"] = Json::array();
    for (const auto& report : store.reports_of(data.study.id, number))
      if (!report.reason.empty())
        json["decisions"].push_back(
            {{"time", report.time}, {"iteration", report.iteration}, {"reason", report.reason}});
    json["suggested"] = {
        {"search", data.spec.search},
        {"summary", summary_of_search(data.spec.search)},
        {"known", store.ended_before(data.study.id, data.records.front().asked_seq)}};
    return json;
  });
}

std::filesystem::path StudyPages::directory_of(const std::string& name, std::int64_t number) {
  return with_store([&](store::StudyStore& store) {
    const auto found = store.trials(store.at(name).id, {number, number + 1});
    if (found.empty()) throw_error(ErrorCode::not_found, "study {} has no trial {}", name, number);
    return std::filesystem::path(found.front().directory);
  });
}

void StudyPages::add_trials(const std::string& name, std::int64_t count) {
  with_store([&](store::StudyStore& store) {
    tune::request_trials(store, store.at(name), count);
    return 0;
  });
}

void StudyPages::stop(const std::string& name, std::optional<std::int64_t> trial) {
  with_store([&](store::StudyStore& store) {
    tune::request_stop(store, store.at(name), trial);
    return 0;
  });
}

}  // namespace kolo::dashboard
