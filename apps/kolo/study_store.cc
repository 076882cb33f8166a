#include "study_store.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/errors.h"
#include "base/text_table.h"
#include "tune/protocol/value_text.h"
#include "tune/study/study.h"
#include "tune/trial/trial_names.h"

namespace kolo::app {

OpenStore::OpenStore(const std::string& storage) {
  tune::Options options;
  options.storage = storage;
  try {
    database = store::open_database(tune::storage_url(options), {.create = false});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
    throw_error(ErrorCode::not_found,
                "{}; `kolo tune` makes one, --storage and KOLO_STORAGE name another",
                error.message());
  }
  store = std::make_unique<store::StudyStore>(*database);
}

namespace {

/// Columns of the terminal that is written to; 0 where it is none.
std::size_t terminal_width() {
  winsize size{};
  const bool is_terminal =
      ::isatty(STDOUT_FILENO) != 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return is_terminal ? size.ws_col : 0;
}

}  // namespace

std::string study_or_newest(store::StudyStore& store, const std::string& given) {
  if (!given.empty()) return given;
  const auto studies = store.studies();  // in the order of their creation
  if (studies.empty())
    throw_error(ErrorCode::not_found, "there is no study in {}; `kolo tune` makes one",
                store.database().name());
  return studies.back().name;
}

std::string cell_text(const tune::Value& value) {
  if (value.is_nothing()) return "";
  if (value.is_number() && !value.is_integer()) return short_number(value.as_number());
  return value.is_string() ? value.as_string() : value.to_string();
}

std::string short_text(const tune::Value& value) {
  if (!value.is_dict()) return cell_text(value);
  std::string text;
  for (const auto& [key, item] : tune::flatten(value))
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", key, cell_text(item));
  return text;
}

void print_table(const tune::Table& table) {
  std::vector<std::vector<std::string>> rows{table.columns};
  for (const auto& row : table.rows) {
    auto& cells = rows.emplace_back();
    std::transform(row.begin(), row.end(), std::back_inserter(cells), cell_text);
  }
  fmt::print("{}", text_table(rows, {.width = terminal_width()}));
}

std::int64_t trial_number(store::StudyStore& store, const store::StudyRecord& study,
                          const std::string& text) {
  const std::int64_t trials = store.trial_count(study.id);
  std::int64_t number = -1;
  const char* const end = text.data() + text.size();
  if (const auto [last, error] = std::from_chars(text.data(), end, number);
      error == std::errc() && last == end && number >= 0 && number < trials)
    return number;
  for (std::int64_t i = 0; i < trials; ++i)
    if (tune::trial_id(study.first_name, study.created, i) == text) return i;
  throw_error(ErrorCode::not_found, "study {} has no trial '{}'; it has {} trials", study.name,
              text, trials);
}

}  // namespace kolo::app
