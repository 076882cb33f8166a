#include "search/space/domain_spelling.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/errors.h"
#include "base/registry.h"
#include "kolo/search/domain.h"

namespace kolo::search {
namespace {

constexpr std::string_view kArgumentNames[] = {"low",  "high", "q",      "base",   "prior",
                                               "mean", "sd",   "values", "weights"};

std::vector<std::string_view> domain_words() {
  std::vector<std::string_view> words;
  for (auto i = static_cast<int>(Primitive::uniform); i < static_cast<int>(Primitive::sample_from);
       ++i)
    words.push_back(to_string(static_cast<Primitive>(i)));
  words.insert(words.end(), {"eval", "constant", "const"});
  return words;
}

bool is_argument_name(std::string_view name) {
  return std::find(std::begin(kArgumentNames), std::end(kArgumentNames), name) !=
         std::end(kArgumentNames);
}

/// A list of plain values, or values by the names of arguments.
bool looks_like_arguments(const Json& json) {
  if (json.is_array())
    return !json.empty() && std::none_of(json.begin(), json.end(),
                                         [](const Json& item) { return item.is_object(); });
  if (!json.is_object() || json.empty()) return false;
  for (const auto& [name, value] : json.items())
    if (!is_argument_name(name) || value.is_object()) return false;
  return true;
}

/// "tune.loguniform(1e-4, 1e-1)", which is Python's way.
void refuse_call(const std::string& text, const std::string& path) {
  const auto open = text.find('(');
  if (open == std::string::npos || text.back() != ')') return;
  const auto dot = text.rfind('.', open);
  const std::string name = text.substr(dot == std::string::npos ? 0 : dot + 1,
                                       open - (dot == std::string::npos ? 0 : dot + 1));
  if (!is_domain_word(name)) return;
  throw_error(
      ErrorCode::invalid_argument,
      "{}: '{}' is a text; write the domain as {{{}: [{}]}}, or {{constant: …}} if the text "
      "is meant",
      path, text, name, text.substr(open + 1, text.size() - open - 2));
}

}  // namespace

bool is_domain_word(std::string_view key) {
  const auto words = domain_words();
  return std::find(words.begin(), words.end(), key) != words.end();
}

bool is_domain(const Json& json) {
  return json.is_object() && json.size() == 1 && is_domain_word(json.begin().key());
}

bool holds_domain(const Json& json) {
  return is_domain(json) ||
         (json.is_structured() && std::any_of(json.begin(), json.end(), holds_domain));
}

void refuse_misspelt_domain(const Json& json, const std::string& path) {
  if (json.is_string()) return refuse_call(json.get<std::string>(), path);
  if (!json.is_object() || path.empty()) return;
  if (json.size() == 1) {
    const std::string& key = json.begin().key();
    if (!looks_like_arguments(json.begin().value())) return;
    throw_error(ErrorCode::invalid_argument,
                "{}: {}. If a constant is meant, write {{constant: {}}}", path,
                unknown_name("domain", key, domain_words()), json_text(json));
  }
  for (const auto& [key, inside] : json.items()) {
    if (!is_domain_word(key) || !looks_like_arguments(inside)) continue;
    auto other = json.begin();
    if (other.key() == key) ++other;
    throw_error(
        ErrorCode::invalid_argument,
        "{}: '{}' stands beside '{}'; a domain is the only key of its dictionary and has all "
        "its arguments inside. If a constant is meant, write {{constant: …}}",
        path, key, other.key());
  }
}

}  // namespace kolo::search
