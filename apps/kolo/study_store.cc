#include "study_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/errors.h"
#include "base/text_table.h"
#include "tune/study/study.h"
#include "tune/trial/trial_names.h"

namespace kolo::app {

OpenStore::OpenStore(const std::string& storage) {
  tune::Options options;
  options.storage = storage;
  database = store::open_database(tune::storage_url(options), {.create = false});
  store = std::make_unique<store::StudyStore>(*database);
}

std::string cell_text(const tune::Value& value) {
  if (value.is_nothing()) return "";
  if (value.is_number() && !value.is_integer()) return short_number(value.as_number());
  return value.is_string() ? value.as_string() : value.to_string();
}

void print_table(const tune::Table& table) {
  std::vector<std::vector<std::string>> rows{table.columns};
  for (const auto& row : table.rows) {
    auto& cells = rows.emplace_back();
    std::transform(row.begin(), row.end(), std::back_inserter(cells), cell_text);
  }
  fmt::print("{}", text_table(rows));
}

std::int64_t trial_number(store::StudyStore& store, const store::StudyRecord& study,
                          const std::string& text) {
  const auto trials = static_cast<std::int64_t>(store.trials(study.id).size());
  std::int64_t number = -1;
  const char* const end = text.data() + text.size();
  if (const auto [last, error] = std::from_chars(text.data(), end, number);
      error == std::errc() && last == end && number >= 0 && number < trials)
    return number;
  for (std::int64_t i = 0; i < trials; ++i)
    if (tune::trial_id(study.name, study.created, i) == text) return i;
  throw_error(ErrorCode::not_found, "study {} has no trial '{}'; it has {} trials", study.name,
              text, trials);
}

}  // namespace kolo::app
