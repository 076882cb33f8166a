#include "study_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/errors.h"
#include "tune/study/study.h"
#include "tune/trial/trial_names.h"

namespace kolo::app {
namespace {

/// Moves what is no option (nor the value of one) behind the options.
SplitArguments gather(std::span<const Setting> table, const std::vector<std::string>& arguments) {
  SplitArguments all;
  std::vector<std::string> rest = arguments;
  while (!rest.empty()) {
    SplitArguments part = split_arguments(table, rest);
    all.options.insert(all.options.end(), part.options.begin(), part.options.end());
    if (part.program.empty()) break;
    all.program.push_back(part.program.front());
    rest.assign(part.program.begin() + 1, part.program.end());
  }
  return all;
}

}  // namespace

OpenStore::OpenStore(const Settings& settings) {
  tune::Options options;
  options.storage = settings.text("storage").value_or("");
  database = store::open_database(tune::storage_url(options), {.create = false});
  store = std::make_unique<store::StudyStore>(*database);
}

ParsedCommand::ParsedCommand(std::span<const Setting> table,
                             const std::vector<std::string>& arguments, std::string_view usage,
                             std::size_t least, std::size_t most)
    : settings(table, gather(table, arguments).options, "") {
  words = gather(table, arguments).program;
  help = settings.flag("help");
  if (help) {
    fmt::print("Usage: {}\n\nOptions:\n{}", usage, help_text(table));
    return;
  }
  if (words.size() < least || words.size() > most)
    throw_error(ErrorCode::invalid_argument, "Usage: {}", usage);
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
