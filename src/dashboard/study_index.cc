// follow() reads the row of the study before its trials: what is written in between may be read
// twice, but is never missed. New trials are read a thousand at a time. Trials under way are read
// again in ranges that join neighbours over small gaps, because one query for a range is cheaper
// than one for each trial. Configurations are decoded again only if their hash has changed. A study
// that had ended and runs again is read from the beginning, since trials that had ended may go on.
// Filters mark rows column by column, and a sort orders only the rows up to the end of the page.
#include "dashboard/study_index.h"

#include <algorithm>
#include <cmath>

#include "tune/output/chosen_trials.h"
#include "tune/protocol/value_text.h"
#include "tune/trial/shown_config.h"
#include "tune/trial/trial_names.h"

namespace kolo::dashboard {
namespace {

using store::TrialStatus;
using tune::Value;

constexpr std::int64_t kStep = 1000;
/// Trials under way are read together with those between them if there are few of those.
constexpr std::int64_t kGap = 16;
/// A program that invents names of metrics must not fill the memory.
constexpr std::size_t kMostColumns = 300;

const std::string kConfig = "config/";
constexpr const char* kStatus = "status";
constexpr const char* kIteration = "training_iteration";
constexpr const char* kSeconds = "time_total_s";
constexpr const char* kFailure = "error";

/// So many of a sorted list, evenly.
template <class Item>
std::vector<Item> evenly(const std::vector<Item>& all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<Item> some;
  const double step = static_cast<double>(all.size()) / static_cast<double>(most);
  for (std::size_t i = 0; i < most; ++i)
    some.push_back(all[static_cast<std::size_t>(static_cast<double>(i) * step)]);
  return some;
}

}  // namespace

StudyIndex::StudyIndex(store::StudyRecord study)
    : study_(std::move(study)), spec_(tune::StudySpec::from_json(study_.spec)) {
  study_.seq = -1;  // of which nothing has been read
}

bool StudyIndex::follow(store::StudyStore& store, const Deadline& deadline) {
  // What is written from here on is read next time.
  const auto now = store.at(study_.name);
  if (complete_ && now.seq == study_.seq && now.status == study_.status) return true;
  // A study that had ended and goes on may take up trials that had ended.
  if (complete_ && now.status == store::StudyStatus::running && now.status != study_.status)
    *this = StudyIndex(now);
  for (bool more = true; more;) {
    const auto first = static_cast<std::int64_t>(size());
    read(store, {first, first + kStep});
    more = static_cast<std::int64_t>(size()) == first + kStep;
    if (more && deadline.passed()) return false;
  }
  if (complete_) {  // else all that is under way has just been read
    const auto under_way = open_;
    for (std::size_t i = 0; i < under_way.size();) {
      std::size_t last = i;
      while (last + 1 < under_way.size() && under_way[last + 1] - under_way[last] <= kGap &&
             under_way[last + 1] - under_way[i] < kStep)
        ++last;
      read_again(store, {under_way[i], under_way[last] + 1});
      i = last + 1;
    }
  }
  read_events(store);
  std::erase_if(open_, [this](std::int64_t n) { return over_[static_cast<std::size_t>(n)] != 0; });
  std::erase_if(configs_, [this](const auto& entry) {
    return over_[static_cast<std::size_t>(entry.first)] != 0;
  });
  study_ = now;
  spec_ = tune::StudySpec::from_json(study_.spec);
  complete_ = true;
  return true;
}

void StudyIndex::read(store::StudyStore& store, store::TrialRange range) {
  for (const auto& record : store.trials(study_.id, range)) put(record);
  const auto known = metrics();
  for (const auto& report : store.last_reports(study_.id, range))
    if (static_cast<std::size_t>(report.trial) < size()) put(store, report, known);
}

void StudyIndex::read_again(store::StudyStore& store, store::TrialRange range) {
  for (const auto& record : store.trials(study_.id, range))
    if (over_[static_cast<std::size_t>(record.number)] == 0) put(record);
  for (const auto& report : store.reports_after(study_.id, range, study_.seq)) {
    const auto row = static_cast<std::size_t>(report.trial);
    until_ = std::max(until_, report.time);
    put_metrics(row, report.metrics);
    column(kIteration).set(row, report.iteration);
    column(kSeconds).set(row, report.seconds);
  }
}

void StudyIndex::put(const store::TrialRecord& record) {
  const auto row = static_cast<std::size_t>(record.number);
  if (row >= size()) {
    open_.push_back(record.number);
    status_.resize(row + 1);
    stopped_.resize(row + 1);
    over_.resize(row + 1);
    started_.resize(row + 1, kNoNumber);
    ended_.resize(row + 1, kNoNumber);
  }
  status_[row] = static_cast<std::uint8_t>(record.status);
  over_[row] = record.ended_seq ? 1 : 0;
  started_[row] = record.started.value_or(kNoNumber);
  ended_[row] = record.ended.value_or(kNoNumber);
  until_ = std::max({until_, record.started.value_or(0), record.ended.value_or(0)});
  if (!record.outcome.empty())
    stopped_[row] = tune::decode(record.outcome, "an outcome").at_path("state").as_integer() ==
                    static_cast<std::int64_t>(search::TrialState::pruned);
  column(kStatus).set(row, std::string(to_string(record.status)));
  if (record.iteration > 0) column(kIteration).set(row, record.iteration);
  column(kSeconds).set(row, record.seconds);
  // Only members of a population ever run with another one.
  const auto hash = std::hash<std::string>()(record.config);
  if (const auto known = configs_.find(record.number);
      known == configs_.end() || known->second != hash) {
    if (!record.ended_seq) configs_[record.number] = hash;
    for (const auto& [key, value] :
         tune::flat_config(tune::decode(record.config, "a configuration")))
      column(kConfig + key).set(row, value);
  }
  places_.set(row, record.place);
  reasons_.set(row, record.why);
  if (record.error.empty() && row < errors_.size()) errors_.set(row, {});
  if (!record.error.empty()) errors_.set(row, record.error);
}

void StudyIndex::put(store::StudyStore& store, const store::ReportRecord& report,
                     const std::vector<std::string>& known) {
  const auto row = static_cast<std::size_t>(report.trial);
  until_ = std::max(until_, report.time);
  put_metrics(row, report.metrics);
  // A metric that is not in every report has its last value in an earlier one.
  const bool lacks = std::any_of(known.begin(), known.end(), [&](const std::string& metric) {
    const auto* values = find(metric);
    return values == nullptr || std::isnan(values->number(row));
  });
  if (lacks && report.iteration > 1) {
    for (const auto& earlier : store.reports_of(study_.id, report.trial))
      put_metrics(row, earlier.metrics);
  }
  column(kIteration).set(row, report.iteration);
  column(kSeconds).set(row, report.seconds);
}

void StudyIndex::put_metrics(std::size_t row, const std::string& metrics) {
  for (const auto& [key, value] : tune::flatten(tune::decode(metrics, "a report")))
    if (columns_.size() < kMostColumns || columns_.contains(key)) column(key).set(row, value);
}

void StudyIndex::read_events(store::StudyStore& store) {
  for (auto& event : store.events(study_.id, event_seq_)) {
    event_seq_ = std::max(event_seq_, event.seq);
    until_ = std::max(until_, event.time);
    if (event.trial && (event.kind == "pause" || event.kind == "resume" ||
                        event.kind == "failure" || event.kind == "clone"))
      moves_[*event.trial].push_back(std::move(event));
  }
}

Column& StudyIndex::column(const std::string& name) { return columns_[name]; }

const Column* StudyIndex::find(const std::string& name) const {
  const auto found = columns_.find(name);
  return found != columns_.end() ? &found->second : nullptr;
}

double StudyIndex::badness(std::size_t row) const {
  if (spec_.objectives.empty()) return kNoNumber;
  const auto& objective = spec_.objectives.front();
  const Column* values = find(objective.metric);
  if (values == nullptr) return kNoNumber;
  const double value = values->number(row);
  return objective.direction == search::Direction::minimize ? value : -value;
}

tune::StudyCounts StudyIndex::counts() const {
  tune::StudyCounts counts{.trials = size()};
  for (const char over : over_) counts.done += over;
  for (const auto status : status_)
    counts.failed += static_cast<TrialStatus>(status) == TrialStatus::error ? 1 : 0;
  if (spec_.objectives.size() != 1) return counts;
  if (const auto row = best())
    counts.best = find(spec_.objectives.front().metric)->number(static_cast<std::size_t>(*row));
  return counts;
}

std::map<std::string, std::size_t> StudyIndex::by_status() const {
  std::map<std::uint8_t, std::size_t> numbers;
  for (const auto status : status_) ++numbers[status];
  std::map<std::string, std::size_t> all;
  for (const auto& [status, count] : numbers)
    all.emplace(to_string(static_cast<TrialStatus>(status)), count);
  return all;
}

std::size_t StudyIndex::stopped_early() const {
  return static_cast<std::size_t>(std::count(stopped_.begin(), stopped_.end(), char{1}));
}

std::vector<std::string> StudyIndex::metrics() const {
  std::set<std::string> numbers;
  for (const auto& [name, column] : columns_)
    if (!name.starts_with(kConfig) && name != kStatus && column.has_numbers()) numbers.insert(name);
  return tune::metrics_shown(spec_.objectives, numbers);
}

std::optional<std::int64_t> StudyIndex::best() const {
  std::optional<std::int64_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t row = 0; row < size(); ++row)
    if (const double bad = badness(row); bad < least) {
      least = bad;
      best = static_cast<std::int64_t>(row);
    }
  return best;
}

std::vector<std::int64_t> StudyIndex::chosen(std::span<const std::uint32_t> among,
                                             std::size_t most) const {
  std::vector<double> bad(size());
  for (std::size_t row = 0; row < bad.size(); ++row) bad[row] = badness(row);
  return tune::chosen_trials({among.begin(), among.end()}, bad, most);
}

std::vector<std::int64_t> StudyIndex::ended(std::size_t most) const {
  std::vector<std::int64_t> all;
  for (std::size_t row = 0; row < size(); ++row)
    if (over_[row] != 0) all.push_back(static_cast<std::int64_t>(row));
  return evenly(all, most);
}

std::vector<std::int64_t> StudyIndex::running() const {
  std::vector<std::int64_t> numbers;
  for (const auto number : open_)
    if (static_cast<TrialStatus>(status_[static_cast<std::size_t>(number)]) == TrialStatus::running)
      numbers.push_back(number);
  return numbers;
}

std::int64_t StudyIndex::iteration(std::int64_t number) const {
  const Column* iterations = find(kIteration);
  const double value =
      iterations == nullptr ? kNoNumber : iterations->number(static_cast<std::size_t>(number));
  return std::isnan(value) ? 0 : static_cast<std::int64_t>(value);
}

tune::TrialFacts StudyIndex::facts(std::int64_t number) const {
  const auto row = static_cast<std::size_t>(number);
  const auto text = [row](const Column& column) {
    const Value value = column.at(row);
    return value.is_string() ? value.as_string() : std::string();
  };
  const auto time = [row](const std::vector<double>& times) {
    return std::isnan(times[row]) ? std::nullopt : std::optional(times[row]);
  };
  store::TrialRecord record;
  record.place = text(places_);
  record.started = time(started_);
  record.ended = time(ended_);
  const auto moves = moves_.find(number);
  tune::TrialFacts facts{
      .number = number,
      .id = tune::trial_id(study_.first_name, study_.created, number),
      .status = static_cast<TrialStatus>(status_[row]),
      .stopped = stopped_[row] != 0,
      .seconds = find(kSeconds)->number(row),
      .iterations = iteration(number),
      .why = text(reasons_),
      .error = text(errors_),
      .config = {},
      .metrics = {},
      .runs =
          tune::runs_json(record,
                          moves != moves_.end() ? std::span<const store::EventRecord>(moves->second)
                                                : std::span<const store::EventRecord>(),
                          until())};
  for (const auto& [name, column] : columns_) {
    Value value = column.at(row);
    if (value.is_nothing()) continue;
    if (name.starts_with(kConfig))
      facts.config.emplace(name.substr(kConfig.size()), std::move(value));
    else
      facts.metrics.emplace(name, std::move(value));
  }
  return facts;
}

std::vector<std::string> StudyIndex::shown_columns() const {
  std::vector<std::string> names = {"trial", kStatus, kIteration, kSeconds};
  for (const auto& objective : spec_.objectives)
    if (columns_.contains(objective.metric)) names.push_back(objective.metric);
  if (errors_.size() > 0 && !columns_.contains(kFailure)) names.emplace_back(kFailure);
  for (const bool config : {true, false})
    for (const auto& [name, column] : columns_)
      if (name.starts_with(kConfig) == config &&
          std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
  return names;
}

const Column& StudyIndex::field(const std::vector<std::string>& names, std::size_t place,
                                Column& numbers) const {
  if (place > 0) {
    const Column* column = find(names[place]);
    return column != nullptr ? *column : errors_;
  }
  for (std::size_t row = numbers.size(); row < size(); ++row)
    numbers.set(row, static_cast<std::int64_t>(row));
  return numbers;
}

std::vector<std::uint32_t> StudyIndex::matching(const std::string& filter) const {
  std::vector<char> marks(size(), 1);
  if (!filter.empty()) {
    const auto names = shown_columns();
    Column numbers;
    for (const auto& condition : tune::parse_conditions(filter, names, [&](std::size_t place) {
           return field(names, place, numbers).has_numbers_alone();
         }))
      field(names, condition.column(), numbers).filter(condition, marks);
  }
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = 0; row < marks.size(); ++row)
    if (marks[row] != 0) rows.push_back(row);
  return rows;
}

StudyIndex::Answer StudyIndex::trials(const TrialsQuestion& question) const {
  Answer answer;
  answer.rows.columns = shown_columns();
  const auto& names = answer.rows.columns;
  Column numbers;
  auto rows = matching(question.filter);
  answer.matching = rows.size();
  answer.offset = std::min(question.offset, rows.size());
  const auto end = std::min(answer.offset + question.limit, rows.size());
  if (!question.sort.empty())
    field(names, tune::column_of(names, question.sort), numbers)
        .sort(rows, question.descending, end);
  for (std::size_t i = answer.offset; i < end; ++i) {
    auto& cells = answer.rows.rows.emplace_back();
    cells.emplace_back(static_cast<std::int64_t>(rows[i]));
    for (std::size_t place = 1; place < names.size(); ++place)
      cells.push_back(field(names, place, numbers).at(rows[i]));
  }
  return answer;
}

}  // namespace kolo::dashboard
