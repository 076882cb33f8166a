// The key "kolo" tells lines of the protocol from plain dictionaries of metrics, so that a program
// can report without knowing the protocol. Such a line is classified by the first key that it has,
// in a fixed order: result, report, error, hello, checkpoint. A checkpoint is last, because reports
// may carry one too. Keys that are not known are ignored, but another version is refused.
// parse_last_words() prefers the last line that begins with DH-OUTPUT:, and then tries the last
// line as JSON, as numbers and as assignments. Other text is no result, since programs also write
// for people.
#include "tune/protocol/trial_protocol.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/errors.h"
#include "base/text_table.h"
#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace {

constexpr const char* kVersionKey = "kolo";
/// Of a line. "0," is two bytes of it, and takes a hundred times as much when it is read.
constexpr std::ptrdiff_t kMostValues = 1'000'000;
/// What a trial says of its failure is cut to so many letters; a line that is wrong is shown for as
/// long as people read it.
constexpr std::size_t kLongestFailure = 8192, kLongestShown = 200;

std::string shown(std::string_view text) {
  // A letter of UTF-8 has four bytes at most.
  return shortened(std::string(text.substr(0, 4 * kLongestShown + 4)), kLongestShown);
}

const Value* field(const Value& line, std::string_view key) {
  const auto& fields = line.as_dict();
  const auto found = fields.find(key);
  return found == fields.end() ? nullptr : &found->second;
}

std::string line_of(Value::Dict fields) {
  fields.emplace(kVersionKey, kTrialProtocol);
  return encode(Value(std::move(fields))) + "\n";
}

std::string metrics_line(const char* key, const Value& metrics,
                         const std::filesystem::path& checkpoint,
                         std::optional<std::int64_t> iteration = std::nullopt) {
  Value::Dict fields{{key, metrics}};
  if (iteration) fields.emplace("iteration", *iteration);
  if (!checkpoint.empty()) fields.emplace("checkpoint", checkpoint.string());
  return line_of(std::move(fields));
}

Value decode_line(std::string_view text) {
  if (std::count(text.begin(), text.end(), ',') > kMostValues)
    throw_error(ErrorCode::invalid_argument,
                "a report has more than {} values; keep large tables in a file of the trial",
                kMostValues);
  Value value;
  try {
    value = decode(text, "a line of a trial");
  } catch (const Error& error) {
    throw_error(ErrorCode::invalid_argument, "{}", error.message());
  }
  if (!value.is_dict())
    throw_error(ErrorCode::invalid_argument, "a line must be a JSON object, not {}", shown(text));
  if (const Value* version = field(value, kVersionKey);
      version != nullptr && (!version->is_integer() || version->as_integer() != kTrialProtocol))
    throw_error(ErrorCode::invalid_argument, "version {} of the trial protocol is not known",
                shown(version->to_string()));
  return value;
}

std::filesystem::path checkpoint_of(const Value& path) {
  if (path.as_string().find('\0') != std::string::npos)
    throw_error(ErrorCode::invalid_argument, "the path of a checkpoint has a NUL character");
  return path.as_string();
}

/// A whole number, a number, true, false, or text.
Value word_value(const std::string& word) {
  if (word == "true") return true;
  if (word == "false") return false;
  const char* const end = word.data() + word.size();
  std::int64_t whole = 0;
  if (auto [last, error] = std::from_chars(word.data(), end, whole);
      error == std::errc() && last == end)
    return whole;
  double number = 0;
  if (auto [last, error] = std::from_chars(word.data(), end, number);
      error == std::errc() && last == end)
    return number;
  return word;
}

/// A number, or a list of them for several objectives as Python writes it: [1, 2] or (1, 2).
Value objectives_in(const std::string& text, std::string_view metric) {
  const bool is_list = (text.starts_with('[') && text.ends_with(']')) ||
                       (text.starts_with('(') && text.ends_with(')'));
  if (!is_list) return Value{{std::string(metric), word_value(text)}};
  std::string_view name = metric;
  if (name.ends_with("_0")) name.remove_suffix(2);
  return Value{{std::string(name), decode("[" + text.substr(1, text.size() - 2) + "]", "a list")}};
}

}  // namespace

TrialLine parse_trial_line(std::string_view text) {
  Value value = decode_line(text);
  TrialLine line;
  if (field(value, kVersionKey) == nullptr) {
    require_shallow(value, "a report");
    line.metrics = std::move(value);
    line.is_plain = true;
    return line;
  }
  if (const Value* path = field(value, "checkpoint")) line.checkpoint = checkpoint_of(*path);
  const Value* const result = field(value, "result");
  if (const Value* metrics = result != nullptr ? result : field(value, "report")) {
    if (!metrics->is_dict())
      throw_error(ErrorCode::invalid_argument, "a report must be an object of metrics");
    line.kind = result != nullptr ? TrialLine::Kind::result : TrialLine::Kind::report;
    require_shallow(*metrics, "a report");
    line.metrics = *metrics;
    if (const Value* iteration = field(value, "iteration")) {
      if (!iteration->is_integer() || iteration->as_integer() < 1)
        throw_error(ErrorCode::invalid_argument,
                    "the iteration of a report must be a whole number from 1 on, not {}",
                    shown(iteration->to_string()));
      line.iteration = iteration->as_integer();
    }
  } else if (const Value* error = field(value, "error")) {
    line.kind = TrialLine::Kind::failure;
    line.error = shortened(error->as_string(), kLongestFailure);
  } else if (const Value* token = field(value, "hello")) {
    line.kind = TrialLine::Kind::hello;
    line.token = token->as_string();
    if (const Value* saves = field(value, "saves")) line.saves_on_request = saves->as_bool();
  } else if (!line.checkpoint.empty()) {
    line.kind = TrialLine::Kind::checkpoint;
  } else {
    throw_error(ErrorCode::invalid_argument,
                "a line with \"kolo\" needs \"report\", \"result\", \"checkpoint\", \"hello\" or "
                "\"error\": {}",
                shown(text));
  }
  return line;
}

std::string hello_line(std::string_view token, bool saves_on_request) {
  return line_of({{"hello", std::string(token)}, {"saves", saves_on_request}});
}
std::string report_line(const Value& metrics, const std::filesystem::path& checkpoint,
                        std::optional<std::int64_t> iteration) {
  return metrics_line("report", metrics, checkpoint, iteration);
}
std::string result_line(const Value& metrics, const std::filesystem::path& checkpoint) {
  return metrics_line("result", metrics, checkpoint);
}
std::string checkpoint_line(const std::filesystem::path& checkpoint) {
  return line_of({{"checkpoint", checkpoint.string()}});
}
std::string failure_line(std::string_view error) {
  return line_of({{"error", std::string(error)}});
}

std::string answer_line(Answer answer) {
  const char* action = answer.reply == Reply::proceed ? "continue"
                       : answer.reply == Reply::stop  ? "stop"
                                                      : "pause";
  Value::Dict fields{{"action", action}};
  if (answer.save) fields.emplace("save", true);
  return line_of(std::move(fields));
}
std::string stop_line() { return line_of({{"stop", true}}); }

StudyLine parse_study_line(std::string_view text) {
  const Value value = decode_line(text);
  StudyLine line;
  const Value* action = field(value, "action");
  if (action == nullptr) return line;
  line.answer.emplace();
  if (action->as_string() == "stop")
    line.answer->reply = Reply::stop;
  else if (action->as_string() == "pause")
    line.answer->reply = Reply::pause;
  else if (action->as_string() != "continue")
    throw_error(ErrorCode::invalid_argument, "the study said '{}', which is not known",
                action->as_string());
  const Value* save = field(value, "save");
  line.answer->save = save != nullptr && save->as_bool();
  return line;
}

Value parse_assignments(const std::vector<std::string>& words) {
  Value::Dict metrics;
  for (const auto& word : words) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      throw_error(ErrorCode::invalid_argument, "'{}' is not NAME=VALUE", word);
    metrics.insert_or_assign(word.substr(0, equals), word_value(word.substr(equals + 1)));
  }
  return Value(std::move(metrics));
}

std::optional<Value> parse_last_words(std::string_view output, std::string_view metric) {
  // DeepHyper's line may stand anywhere.
  constexpr std::string_view kMark = "DH-OUTPUT:";
  for (auto mark = output.rfind(kMark); mark != std::string_view::npos && !metric.empty();
       mark = mark == 0 ? std::string_view::npos : output.rfind(kMark, mark - 1)) {
    if (mark > 0 && output[mark - 1] != '\n') continue;
    auto rest = output.substr(mark + kMark.size());
    rest = rest.substr(0, rest.find('\n'));
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) rest.remove_prefix(1);
    while (!rest.empty() && (rest.back() == ' ' || rest.back() == '\r')) rest.remove_suffix(1);
    try {
      return rest.starts_with('{') ? decode(rest, "DH-OUTPUT")
                                   : objectives_in(std::string(rest), metric);
    } catch (const Error&) {
      return Value{{std::string(metric), std::string(rest)}};  // no number: the trial fails with it
    }
  }
  while (!output.empty() &&
         (output.back() == '\n' || output.back() == '\r' || output.back() == ' '))
    output.remove_suffix(1);
  const auto start = output.rfind('\n');
  const std::string line(start == std::string_view::npos ? output : output.substr(start + 1));
  if (line.empty()) return std::nullopt;
  try {
    if (line.front() == '{') {
      Value value = decode(line, "the last line of output");
      return value.is_dict() ? std::optional(std::move(value)) : std::nullopt;
    }
    if (!metric.empty() && (word_value(line).is_number() || line[0] == '[' || line[0] == '('))
      return objectives_in(line, metric);
    std::istringstream stream(line);
    const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
    return parse_assignments(words);
  } catch (const Error&) {
    return std::nullopt;  // it is for people, then
  }
}

}  // namespace kolo::tune
