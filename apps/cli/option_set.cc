#include "cli/option_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/errors.h"
#include "base/registry.h"

namespace kolo::cli {
namespace {

std::vector<std::string> spellings(const OptionText& text) {
  auto names = split(text.details.aliases, ' ');
  names.insert(names.begin(), "--" + std::string(text.name));
  return names;
}

[[noreturn]] void throw_unknown(std::span<const OptionSet::Row> rows, const std::string& typed) {
  // Compared without dashes; single letters are near everything.
  const auto bare = [](const std::string& name) {
    return std::string_view(name).substr(std::min(name.find_first_not_of('-'), name.size()));
  };
  std::vector<std::string> all = spellings(help_option());
  for (const auto& row : rows) {
    if (row.text.is_positional()) continue;
    const auto names = spellings(row.text);
    all.insert(all.end(), names.begin(), names.end());
  }
  std::erase_if(all, [&](const std::string& name) { return bare(name).size() < 2; });
  std::vector<std::string_view> known;
  for (const auto& name : all) known.push_back(bare(name));
  const auto near = nearest_name(bare(typed), known);
  std::string advice = "; --help lists them";
  if (!near.empty())
    advice = fmt::format(
        "; did you mean {}?",
        all[static_cast<std::size_t>(std::find(known.begin(), known.end(), near) - known.begin())]);
  throw_error(ErrorCode::invalid_argument, "there is no option {}{}", typed, advice);
}

}  // namespace

std::string dashed(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

const OptionText& help_option() {
  static constexpr OptionText kHelp{"help", "", "Print this text.", {.aliases = "-h"}};
  return kHelp;
}

void OptionSet::add(std::string_view heading, const OptionText& text, ValueRef value) {
  rows_.push_back({text, value, heading, value_text(value)});
}

OptionSet::Row* OptionSet::find(std::string_view typed) {
  const std::string name = dashed(typed);
  std::vector<Row*> begun;
  for (auto& row : rows_) {
    if (row.text.is_positional()) continue;
    bool begins = false;
    for (const auto& spelling : spellings(row.text)) {
      if (spelling == name) return &row;
      begins |= name.size() > 2 && name.starts_with("--") && spelling.starts_with(name);
    }
    if (begins) begun.push_back(&row);
  }
  if (begun.empty() || begun.size() == 1) return begun.empty() ? nullptr : begun.front();
  std::vector<std::string> candidates;
  for (const Row* row : begun) candidates.push_back("--" + std::string(row->text.name));
  throw_error(ErrorCode::invalid_argument, "{} is not unique: it could be {}", typed,
              fmt::join(candidates, ", "));
}

bool OptionSet::has(std::string_view name) const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [name](const Row& row) { return row.text.name == name; });
}

const OptionSet::Row& OptionSet::at(std::string_view name) const {
  const auto found = std::find_if(rows_.begin(), rows_.end(),
                                  [name](const Row& row) { return row.text.name == name; });
  KOLO_CHECK(found != rows_.end());
  return *found;
}

void OptionSet::read(const Arguments& arguments, std::string_view usage) {
  arguments_ = arguments;
  read_arguments(arguments);
  if (wants_help_) return;
  read_environment();
  for (const auto& row : rows_)
    if (row.text.details.is_file && !row.given.empty()) read_file(std::string(row.given.back()));
  for (const auto& row : rows_) {
    if (row.given.empty()) continue;
    if (row.text.details.only_names) check_name(row);
    set_value(row.text, row.value, row.given, row.source);
  }
  require(usage);
}

void OptionSet::read_arguments(const Arguments& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const auto rest = std::span(arguments).subspan(i);
    if (argument == "--") return take_rest(rest.subspan(1));
    if (argument == "--help" || argument == "-h") {
      wants_help_ = true;
      return;
    }
    if (argument.size() > 1 && argument[0] == '-') {
      i += take_option(rest);
      continue;
    }
    Row* const row = next_positional(argument);
    if (row != nullptr && row->text.details.takes == Takes::program)
      return row->take({rest.begin(), rest.end()}, row->text.name);
    take_word(argument);
  }
}

std::size_t OptionSet::take_option(std::span<const std::string> arguments) {
  const std::string& argument = arguments[0];
  const auto equals = argument.find('=');
  const std::string typed = argument.substr(0, equals);
  if (Row* const row = find(typed)) {
    const std::string source = fmt::format("--{}", row->text.name);
    if (equals != std::string::npos) {
      row->take({argument.substr(equals + 1)}, source);
    } else if (row->text.value.empty()) {
      row->take({"true"}, source);
    } else {
      const std::size_t words = split(row->text.value, ' ').size();
      if (arguments.size() <= words)
        throw_error(ErrorCode::invalid_argument, "{0} needs a value: {0} {1}", source,
                    row->text.value);
      if (arguments[1].starts_with("--") && has(arguments[1].substr(2)))
        throw_error(ErrorCode::invalid_argument,
                    "{0} needs a value: {0} {1}; write {0}={2} if that is the value", source,
                    row->text.value, arguments[1]);
      const auto taken = arguments.subspan(1, words);
      row->take({taken.begin(), taken.end()}, source);
      return words;
    }
    return 0;
  }
  Row* const letter = argument[1] == '-' ? nullptr : find(argument.substr(0, 2));  // -n4
  if (letter == nullptr || letter->text.value.empty()) throw_unknown(rows_, typed);
  letter->take({argument.substr(2)}, fmt::format("--{}", letter->text.name));
  return 0;
}

void OptionSet::take_rest(std::span<const std::string> words) {
  const auto program = std::find_if(rows_.begin(), rows_.end(), [](const Row& row) {
    return row.text.details.takes != Takes::one;
  });
  if (program != rows_.end())
    return program->take({words.begin(), words.end()}, program->text.name);
  for (const auto& word : words) take_word(word);
}

void OptionSet::Row::take(std::vector<std::string> texts, std::string_view from) {
  if (is_list() && source == from)
    given.insert(given.end(), texts.begin(), texts.end());
  else
    given = std::move(texts);
  source = from;
}

OptionSet::Row* OptionSet::next_positional(std::string_view word) {
  for (auto& row : rows_) {
    const auto& details = row.text.details;
    if (!row.text.is_positional() || details.takes == Takes::separated) continue;
    if (!row.given.empty() && !row.is_list()) continue;
    if (details.fits != nullptr && !details.fits(word)) continue;
    return &row;
  }
  return nullptr;
}

void OptionSet::take_word(const std::string& word) {
  Row* const row = next_positional(word);
  if (row == nullptr)
    throw_error(
        ErrorCode::invalid_argument, "'{}' is one argument too many{}", word,
        std::any_of(rows_.begin(), rows_.end(),
                    [](const Row& other) { return other.text.details.takes == Takes::separated; })
            ? "; write -- before the program"
            : "");
  row->take({word}, row->text.name);
}

void OptionSet::check_name(const Row& row) const {
  const auto names = row.text.details.names(*this);
  std::vector<std::string_view> known;
  for (const auto& entry : names) {
    if (entry.name == row.given.back()) return;
    known.push_back(entry.name);
  }
  throw_unknown_name(row.source, row.given.back(), known, ErrorCode::invalid_argument);
}

void OptionSet::require(std::string_view usage) const {
  for (const auto& row : rows_)
    if (row.text.details.stands_alone && !row.given.empty()) return;
  for (const auto& row : rows_) {
    const bool is_needed =
        row.text.is_positional() ? !row.text.details.is_optional : row.text.details.is_needed;
    if (!is_needed || !row.given.empty()) continue;
    throw_error(ErrorCode::invalid_argument, "{}{} is missing; usage: {}",
                row.text.is_positional() ? "" : "--", row.text.name, usage);
  }
}

}  // namespace kolo::cli
