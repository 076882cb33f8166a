#include "settings.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/env.h"
#include "base/errors.h"
#include "base/registry.h"
#include "base/yaml.h"

namespace kolo::app {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::istringstream stream{std::string(text)};
  return {std::istream_iterator<std::string>(stream), {}};
}

const Setting* find_row(std::span<const Setting> table, std::string_view option) {
  for (const auto& row : table)
    if (row.option == option) return &row;
  return nullptr;
}

/// The row that an option as typed (without "=value") means.
const Setting* row_of(std::span<const Setting> table, std::string_view typed) {
  for (const auto& row : table) {
    if (typed.starts_with("--") && typed.substr(2) == row.option) return &row;
    for (const auto& alias : words(row.aliases))
      if (typed == alias) return &row;
  }
  return nullptr;
}

/// CLI11's own names: long ones, and aliases of one letter. Others are rewritten before.
std::string names_of(const Setting& row) {
  std::string names;
  for (const auto& alias : words(row.aliases))
    if (alias.size() == 2) names += alias + ",";
  return names + "--" + std::string(row.option);
}

std::string scalar_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Sections of Horovod's files that hold what kolo calls otherwise.
struct Foreign {
  std::string_view section, key, option;
};
constexpr Foreign kForeign[] = {
    {"", "controller", "transport"},
    {"logging", "level", "log-level"},
};
/// Sections for parts that read their own settings elsewhere: not an error, but said.
constexpr std::string_view kUnusedSections[] = {"params",      "autotune",        "timeline",
                                                "stall_check", "library_options", "logging"};

}  // namespace

Settings::Settings(std::span<const Setting> table, const std::vector<std::string>& arguments,
                   std::string_view config_option)
    : table_(table) {
  take_arguments(arguments);
  take_environment();
  if (config_option.empty()) return;
  if (auto file = text(config_option)) take_file(*file);
}

void Settings::take_arguments(const std::vector<std::string>& arguments) {
  CLI::App parser;
  parser.set_help_flag();
  std::map<std::string_view, std::vector<std::string>> given;
  std::map<std::string_view, CLI::Option*> switches;
  for (const auto& row : table_) {
    if (row.value.empty())
      switches[row.option] = parser.add_flag(names_of(row));
    else
      parser.add_option(names_of(row), given[row.option])
          ->expected(1)
          ->multi_option_policy(row.repeats ? CLI::MultiOptionPolicy::TakeAll
                                            : CLI::MultiOptionPolicy::TakeLast)
          ->allow_extra_args(false);
  }
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    parser.parse(reversed);
  } catch (const CLI::ExtrasError&) {
    std::vector<std::string_view> known;
    for (const auto& row : table_) known.push_back(row.option);
    for (const auto& argument : parser.remaining()) {
      const std::string name = argument.substr(0, argument.find('='));
      const auto bare = name.find_first_not_of('-');
      const auto near = bare == std::string::npos ? "" : nearest_name(name.substr(bare), known);
      throw_error(ErrorCode::invalid_argument, "there is no option {}{}", name,
                  near.empty() ? "; --help lists them" : fmt::format("; did you mean --{}?", near));
    }
    throw;
  } catch (const CLI::ParseError& error) {
    throw_error(ErrorCode::invalid_argument, "{}", error.what());
  }
  for (auto& [option, texts] : given)
    if (!texts.empty()) add(option, std::move(texts), fmt::format("--{}", option));
  for (const auto& [option, flag] : switches)
    if (flag->count() > 0) add(option, {"true"}, fmt::format("--{}", option));
}

void Settings::take_environment() {
  for (const auto& row : table_) {
    if (row.variable.empty()) continue;
    for (const char* prefix : {"KOLO_", "HOROVOD_"}) {
      const std::string variable = prefix + std::string(row.variable);
      if (auto value = environment(variable.c_str())) {
        add(row.option, {*value}, variable);
        break;
      }
    }
  }
}

void Settings::take_file(const std::filesystem::path& path) {
  const Json document = load_yaml(path);
  if (document.is_null()) return;
  if (!document.is_object())
    throw_error(ErrorCode::invalid_argument, "{}: a map of settings is needed", path.string());
  for (const auto& [key, value] : document.items()) {
    bool is_section = false;
    for (auto section : kUnusedSections) is_section |= key == section;
    if (!is_section) {
      take_key(key, value, path.string());
      continue;
    }
    for (const auto& [inner, inner_value] : value.items()) {
      auto known = std::find_if(std::begin(kForeign), std::end(kForeign),
                                [&key = key, &inner = inner](const Foreign& f) {
                                  return f.section == key && f.key == inner;
                                });
      if (known != std::end(kForeign))
        take_key(std::string(known->option), inner_value, path.string());
      else
        fmt::print(stderr, "kolo run: {}: {}.{} is not used by kolo\n", path.string(), key, inner);
    }
  }
}

void Settings::take_key(const std::string& key, const Json& value, const std::string& file) {
  std::string option = key;
  std::replace(option.begin(), option.end(), '_', '-');
  for (const auto& foreign : kForeign)
    if (foreign.section.empty() && foreign.key == option) option = foreign.option;
  const Setting* row = find_row(table_, option);
  const std::string source = fmt::format("{}: {}", file, key);
  if (row == nullptr) {
    std::vector<std::string_view> known;
    for (const auto& other : table_) known.push_back(other.option);
    const auto near = nearest_name(option, known);
    throw_error(ErrorCode::invalid_argument, "{}: there is no such setting{}", source,
                near.empty() ? "" : fmt::format("; did you mean {}?", near));
  }
  if (value.is_null()) return;
  std::vector<std::string> texts;
  if (value.is_array() && row->repeats) {
    for (const auto& item : value) texts.push_back(scalar_text(item));
  } else if (value.is_object() && row->repeats) {
    for (const auto& [name, item] : value.items()) texts.push_back(name + "=" + scalar_text(item));
  } else if (value.is_array() || value.is_object()) {
    throw_error(ErrorCode::invalid_argument, "{}: one value is needed", source);
  } else {
    texts.push_back(scalar_text(value));
  }
  if (!texts.empty()) add(row->option, std::move(texts), source);
}

void Settings::add(std::string_view option, std::vector<std::string> texts, std::string source) {
  values_.try_emplace(std::string(option), Value{std::move(texts), std::move(source)});
}

const Settings::Value* Settings::find(std::string_view option) const {
  KOLO_CHECK(find_row(table_, option) != nullptr);
  auto found = values_.find(option);
  return found == values_.end() ? nullptr : &found->second;
}

bool Settings::has(std::string_view option) const { return find(option) != nullptr; }

std::optional<std::string> Settings::text(std::string_view option) const {
  const Value* value = find(option);
  if (value == nullptr) return std::nullopt;
  return value->texts.back();
}

std::vector<std::string> Settings::texts(std::string_view option) const {
  const Value* value = find(option);
  return value == nullptr ? std::vector<std::string>{} : value->texts;
}

std::string Settings::source(std::string_view option) const {
  const Value* value = find(option);
  return value == nullptr ? fmt::format("--{}", option) : value->source;
}

bool Settings::flag(std::string_view option) const {
  auto value = text(option);
  if (!value) return false;
  for (std::string_view yes : {"1", "true", "yes", "on"})
    if (*value == yes) return true;
  for (std::string_view no : {"0", "false", "no", "off"})
    if (*value == no) return false;
  throw_error(ErrorCode::invalid_argument, "{}: '{}' is neither true nor false", source(option),
              *value);
}

std::optional<int> Settings::integer(std::string_view option, int least, int most) const {
  auto value = text(option);
  if (!value) return std::nullopt;
  int number = 0;
  const char* end = value->data() + value->size();
  auto [stop, error] = std::from_chars(value->data(), end, number);
  if (error != std::errc() || stop != end || number < least || number > most)
    throw_error(ErrorCode::invalid_argument, "{}: '{}' is not a whole number from {} to {}",
                source(option), *value, least, most);
  return number;
}

std::optional<double> Settings::positive_number(std::string_view option) const {
  auto value = text(option);
  if (!value) return std::nullopt;
  double number = 0;
  const char* end = value->data() + value->size();
  auto [stop, error] = std::from_chars(value->data(), end, number);
  if (error != std::errc() || stop != end || !(number > 0) || number > 1e9)
    throw_error(ErrorCode::invalid_argument, "{}: '{}' is not a positive number", source(option),
                *value);
  return number;
}

SplitArguments split_arguments(std::span<const Setting> table,
                               const std::vector<std::string>& arguments) {
  SplitArguments split;
  std::size_t i = 0;
  for (; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      ++i;
      break;
    }
    if (argument.size() < 2 || argument.front() != '-') break;
    const auto equals = argument.find('=');
    const std::string typed = argument.substr(0, equals);
    const Setting* row = row_of(table, typed);
    const bool is_letter = typed.size() == 2;
    // Long names for everything that CLI11 does not take as it is (-np, -np=4).
    split.options.push_back(row != nullptr && (!is_letter || equals != std::string::npos)
                                ? fmt::format("--{}{}", row->option,
                                              equals == std::string::npos
                                                  ? ""
                                                  : std::string_view(argument).substr(equals))
                                : argument);
    if (row != nullptr && !row->value.empty() && equals == std::string::npos &&
        i + 1 < arguments.size())
      split.options.push_back(arguments[++i]);
  }
  split.program.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
  return split;
}

std::string help_text(std::span<const Setting> table) {
  std::string text;
  for (const auto& row : table) {
    std::string names;
    for (const auto& alias : words(row.aliases)) names += alias + ", ";
    names += fmt::format("--{}{}{}", row.option, row.value.empty() ? "" : " ", row.value);
    text += fmt::format("  {}\n      {}", names, row.help);
    if (!row.fallback.empty()) text += fmt::format(" [{}]", row.fallback);
    text += "\n";
  }
  return text;
}

std::string manual_text(std::span<const Setting> table) {
  std::string text = "| Option | Variable | Default | Meaning |\n|---|---|---|---|\n";
  for (const auto& row : table) {
    std::string names;
    for (const auto& alias : words(row.aliases)) names += fmt::format("`{}` ", alias);
    const std::string value = row.value.empty() ? "" : fmt::format(" {}", row.value);
    text += fmt::format("| {}`--{}{}` | {} | {} | {} |\n", names, row.option, value,
                        row.variable.empty() ? "" : fmt::format("`KOLO_{}`", row.variable),
                        row.fallback, row.help);
  }
  return text;
}

}  // namespace kolo::app
