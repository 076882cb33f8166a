// Values from variables and from files.
#include <fmt/format.h>

#include <algorithm>

#include "base/env.h"
#include "base/errors.h"
#include "base/registry.h"
#include "base/yaml.h"
#include "cli/option_set.h"

namespace kolo::cli {
namespace {

std::string scalar_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

bool has_key(const OptionText& text, std::string_view key) {
  const auto keys = split(text.details.keys, ' ');
  return text.name == key || std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

void OptionSet::add_config_file() {
  static constexpr OptionText kConfigFile{
      "config-file",
      "FILE",
      "Read options from a YAML file whose keys are the long names of options. Options on the "
      "command line and variables win over the file.",
      {.is_file = true}};
  const bool has_options = std::any_of(rows_.begin(), rows_.end(),
                                       [](const Row& row) { return !row.text.is_positional(); });
  if (has_options && !has(kConfigFile.name))
    add("Other options", kConfigFile, ValueRef(config_file_.get()));
}

void OptionSet::read_environment() {
  for (auto& row : rows_) {
    for (const char* prefix : {"KOLO_", "HOROVOD_"})
      for (const auto& name : split(row.text.details.variables, ' ')) {
        const std::string variable = prefix + name;
        const auto value = environment(variable.c_str());
        if (!value || !row.source.empty()) continue;
        row.given = {*value};
        row.source = variable;
      }
  }
}

void OptionSet::read_file(const std::string& path) {
  const Json document = load_yaml(path);
  if (document.is_null()) return;
  if (!document.is_object())
    throw_error(ErrorCode::invalid_argument, "{}: must be a map of settings", path);
  for (const auto& [key, value] : document.items()) {
    const bool is_unused =
        std::find(unused_sections_.begin(), unused_sections_.end(), key) != unused_sections_.end();
    if (!is_unused || !value.is_object()) {
      read_key(key, value, path);
      continue;
    }
    for (const auto& [inner, inner_value] : value.items()) {
      const std::string whole = fmt::format("{}.{}", key, inner);
      const bool is_known = std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
        return has_key(row.text, dashed(whole));
      });
      if (is_known)
        read_key(whole, inner_value, path);
      else
        fmt::print(stderr, "kolo: {}: {} has no meaning for kolo and is ignored{}\n", path, whole,
                   near_key(whole));
    }
  }
}

std::string OptionSet::near_key(const std::string& key) const {
  std::vector<std::string> keys;
  for (const auto& row : rows_)
    for (auto& each : split(row.text.details.keys, ' ')) keys.emplace_back(each);
  const auto near = nearest_name(dashed(key), {keys.begin(), keys.end()});
  return near.empty() ? "" : fmt::format("; did you mean {}?", near);
}

void OptionSet::read_key(const std::string& key, const Json& value, const std::string& file) {
  const std::string name = dashed(key);
  const std::string source = fmt::format("{}: {}", file, key);
  const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& candidate) {
    return has_key(candidate.text, name);
  });
  if (row == rows_.end()) {
    std::vector<std::string_view> known;
    for (const auto& other : rows_) known.push_back(other.text.name);
    const auto near = nearest_name(name, known);
    throw_error(ErrorCode::invalid_argument, "{}: there is no such setting{}", source,
                near.empty() ? "" : fmt::format("; did you mean {}?", near));
  }
  if (value.is_null() || !row->source.empty()) return;
  std::vector<std::string> texts;
  if (value.is_array() && row->is_list()) {
    for (const auto& item : value) texts.push_back(scalar_text(item));
  } else if (value.is_object() && row->is_list()) {
    for (const auto& [inner, item] : value.items())
      texts.push_back(inner + "=" + scalar_text(item));
  } else if (value.is_array() || value.is_object()) {
    throw_error(ErrorCode::invalid_argument, "{}: must be one value", source);
  } else {
    texts.push_back(scalar_text(value));
  }
  if (texts.empty()) return;
  row->given = std::move(texts);
  row->source = source;
}

}  // namespace kolo::cli
