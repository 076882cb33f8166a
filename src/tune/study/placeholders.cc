#include "tune/study/placeholders.h"

#include <algorithm>
#include <cctype>
#include <functional>

#include "base/errors.h"
#include "base/registry.h"
#include "search/space/path.h"
#include "search/space/space_outline.h"

namespace kolo::tune {
namespace {

constexpr std::string_view kOfTheTrial[] = {"trial_id", "trial_dir", "checkpoint"};

bool is_of_the_trial(std::string_view name) {
  return std::find(std::begin(kOfTheTrial), std::end(kOfTheTrial), name) != std::end(kOfTheTrial);
}

bool is_placeholder_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '/' || c == '-' ||
           c == '.';
  };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(), is_letter);
}

/// The word with each placeholder replaced by what `value_of` says.
std::string replaced(const std::string& word,
                     const std::function<std::string(const std::string& name)>& value_of) {
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool is_shell = i > 0 && word[i - 1] == '$';  // ${NAME}
    const bool twice = word.compare(i, 2, "{{") == 0;
    const std::size_t begin = i + (twice ? 2 : 1);
    const auto close = word[i] == '{' && !is_shell ? word.find('}', i) : std::string::npos;
    const std::string name =
        close != std::string::npos && close > begin ? word.substr(begin, close - begin) : "";
    if (!is_placeholder_name(name) || (twice && word.compare(close, 2, "}}") != 0)) {
      out += word[i];
      continue;
    }
    out += twice ? '{' + name + '}' : value_of(name);
    i = twice ? close + 1 : close;
  }
  return out;
}

}  // namespace

std::vector<std::string> fill_in(const std::vector<std::string>& program,
                                 const search::Value& config, const std::string& trial_id,
                                 const std::string& trial_dir, const std::string& checkpoint) {
  std::vector<std::string> filled;
  for (const auto& word : program)
    filled.push_back(replaced(word, [&](const std::string& name) -> std::string {
      if (name == "trial_id") return trial_id;
      if (name == "trial_dir") return trial_dir;
      if (name == "checkpoint") return checkpoint;
      const search::Value* value = config.find_path(name);
      if (value == nullptr)
        throw_error(ErrorCode::invalid_argument,
                    "'{}' in the program's arguments: the configuration {} has no '{}'", word,
                    config.to_string(), name);
      return value->is_string() ? value->as_string() : value->to_string();
    }));
  return filled;
}

void check_placeholders(const std::vector<std::string>& program, const search::Space& space) {
  const auto paths = search::outline_paths(space);
  std::vector<std::string_view> known;
  for (const auto& path : paths) known.push_back(path.path);
  known.insert(known.end(), std::begin(kOfTheTrial), std::end(kOfTheTrial));
  const auto check = [&](const std::string& name) -> std::string {
    if (is_of_the_trial(name)) return "";
    const auto found = std::find_if(paths.begin(), paths.end(), [&](const auto& known_path) {
      // A dictionary of the configuration, or a part of a value that is one.
      return search::is_within(known_path.path, name) || search::is_within(name, known_path.path);
    });
    if (found == paths.end())
      throw_error(ErrorCode::invalid_argument, "{}. Write {{{{{}}}}} if the text is meant",
                  unknown_name("placeholder", name, known), name);
    if (found->is_conditional)
      throw_error(ErrorCode::invalid_argument,
                  "the program has the placeholder {{{}}}, but configurations have '{}' only if a "
                  "condition holds; let the program read it from the variable KOLO_PARAM_NAME or "
                  "from the file $KOLO_TRIAL_CONFIG",
                  name, name);
    return "";
  };
  for (const auto& word : program) static_cast<void>(replaced(word, check));
}

}  // namespace kolo::tune
