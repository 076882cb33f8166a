#include "options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/errors.h"
#include "base/registry.h"

namespace kolo::app {
namespace {

std::string plain(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

/// All spellings of a row: --option and its aliases.
std::vector<std::string> spellings(const Setting& row) {
  std::vector<std::string> names{"--" + std::string(row.option)};
  std::istringstream words{std::string(row.aliases)};
  for (std::string word; words >> word;) names.push_back(plain(word));
  return names;
}

const Setting& completed_row(std::span<const Setting> table, const std::string& typed) {
  std::vector<const Setting*> begun;
  std::vector<std::string> candidates;
  std::vector<std::string_view> known;
  for (const auto& row : table) {
    known.push_back(row.option);
    bool begins = false;
    for (const auto& name : spellings(row)) {
      if (name == typed) return row;
      begins = begins || (typed.size() > 2 && typed.starts_with("--") && name.starts_with(typed));
    }
    if (begins) {
      begun.push_back(&row);
      candidates.push_back("--" + std::string(row.option));
    }
  }
  if (begun.size() == 1) return *begun[0];
  if (begun.size() > 1)
    throw_error(ErrorCode::invalid_argument, "{} could be {}", typed, fmt::join(candidates, ", "));
  const auto near =
      nearest_name(typed.substr(std::min(typed.find_first_not_of('-'), typed.size())), known);
  throw_error(ErrorCode::invalid_argument, "there is no option {}{}", typed,
              near.empty() ? "; --help lists them" : fmt::format("; did you mean --{}?", near));
}

}  // namespace

Options::Options(std::span<const Setting> table, const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      words_.insert(words_.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                    arguments.end());
      return;
    }
    if (argument.size() < 2 || argument[0] != '-') {
      words_.push_back(argument);
      continue;
    }
    const auto equals = argument.find('=');
    const std::string name = plain(argument.substr(0, equals));
    const Setting& row = completed_row(table, name);
    auto& values = values_[std::string(row.option)];
    if (row.value.empty()) {
      if (equals != std::string::npos)
        throw_error(ErrorCode::invalid_argument, "{} takes no value", name);
      values.emplace_back("true");
    } else if (equals != std::string::npos) {
      values.push_back(argument.substr(equals + 1));
    } else if (i + 1 < arguments.size()) {
      values.push_back(arguments[++i]);
    } else {
      throw_error(ErrorCode::invalid_argument, "{} needs a value: {}", name, row.value);
    }
  }
}

std::optional<std::string> Options::text(std::string_view option) const {
  const auto found = values_.find(option);
  if (found == values_.end()) return std::nullopt;
  return found->second.back();
}

std::vector<std::string> Options::texts(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

std::optional<long long> Options::integer(std::string_view option, long long least) const {
  const auto value = text(option);
  if (!value) return std::nullopt;
  long long number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size() || number < least)
    throw_error(ErrorCode::invalid_argument, "--{} {}: a whole number of at least {} is needed",
                option, *value, least);
  return number;
}

std::optional<double> Options::number(std::string_view option, double least) const {
  const auto value = text(option);
  if (!value) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size() || !(number >= least))
    throw_error(ErrorCode::invalid_argument, "--{} {}: a number of at least {} is needed", option,
                *value, least);
  return number;
}

void Options::expect_words(std::size_t least, std::size_t most, std::string_view usage) const {
  if (words_.size() >= least && words_.size() <= most) return;
  if (words_.size() > most)
    throw_error(ErrorCode::invalid_argument, "'{}' is too much; usage: {}", words_[most], usage);
  throw_error(ErrorCode::invalid_argument, "usage: {}", usage);
}

}  // namespace kolo::app
