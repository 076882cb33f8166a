// Text is written directly into one string, because every report passes through here. Only text
// with bytes above 127 goes through the JSON library, which replaces what is not UTF-8. A text that
// would read as a special number gets one more backslash than it has, and decode() takes one away,
// so that every text comes back as it was. decode() first reads the text as strict JSON. Only if
// that fails, bare words such as NaN are put into quotes, outside of texts, and the result is read
// again; so valid input is parsed once.
#include "tune/protocol/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/errors.h"
#include "base/json.h"
#include "search/space/json_value.h"

namespace kolo::tune {
namespace {

using search::Value;

constexpr char kEscape = '\\';

/// Whether a text, without the escapes before it, stands for a number.
bool stands_for_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kEscape), text.size()));
  return text == "NaN" || text == "Infinity" || text == "-Infinity";
}

/// JSON is UTF-8. Bytes that are none become U+FFFD, since a reader would refuse all of the text.
void append_unicode(std::string& out, std::string_view text) { out += json_text(Json(text)); }

void append_text(std::string& out, std::string_view text) {
  if (std::any_of(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; })) {
    append_unicode(out, text);
    return;
  }
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<int>(c));
        else
          out += c;
    }
  }
  out += '"';
}

void append_number(std::string& out, double number) {
  if (std::isnan(number)) {
    out += "\"NaN\"";
  } else if (std::isinf(number)) {
    out += number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else {
    const auto before = out.size();
    fmt::format_to(std::back_inserter(out), "{}", number);
    // 1 and 1.0 are different values.
    if (out.find_first_of(".e", before) == std::string::npos) out += ".0";
  }
}

void append(std::string& out, const Value& value, int depth) {
  if (depth > kDeepestJson)
    throw_error(ErrorCode::invalid_argument,
                "a value is nested more than {} deep, so it could not be read again; store less "
                "of it",
                kDeepestJson);
  if (value.is_nothing()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_integer()) {
    fmt::format_to(std::back_inserter(out), "{}", value.as_integer());
  } else if (value.is_number()) {
    append_number(out, value.as_number());
  } else if (value.is_string()) {
    const std::string& text = value.as_string();
    append_text(out, stands_for_number(text) ? kEscape + text : text);
  } else if (value.is_list()) {
    char before = '[';
    for (const Value& item : value.as_list()) {
      out += before;
      append(out, item, depth + (item.is_list() || item.is_dict() ? 1 : 0));
      before = ',';
    }
    out += before == '[' ? "[]" : "]";
  } else {
    char before = '{';
    for (const auto& [key, item] : value.as_dict()) {
      out += before;
      append_text(out, key);
      out += ':';
      append(out, item, depth + (item.is_list() || item.is_dict() ? 1 : 0));
      before = ',';
    }
    out += before == '{' ? "{}" : "}";
  }
}

/// Python and others write NaN and Infinity as bare words: here they become texts that stand for
/// them.
std::string with_quoted_numbers(std::string_view text) {
  std::string out;
  bool is_inside = false;  // of a text
  for (std::size_t i = 0; i < text.size();) {
    if (is_inside && text[i] == kEscape) {
      out += text.substr(i, 2);
      i += 2;
      continue;
    }
    if (text[i] == '"') is_inside = !is_inside;
    std::string_view word;
    if (!is_inside)
      for (const std::string_view known : {"NaN", "Infinity", "-Infinity"})
        if (text.substr(i).starts_with(known)) word = known;
    if (word.empty())
      out += text[i];
    else
      out.append("\"").append(word).append("\"");
    i += std::max<std::size_t>(word.size(), 1);
  }
  return out;
}

/// Turns the texts that stand for numbers back into them.
void restore_numbers(Value& value) {
  if (value.is_string()) {
    const std::string& text = value.as_string();
    if (text == "NaN")
      value = std::numeric_limits<double>::quiet_NaN();
    else if (text == "Infinity")
      value = std::numeric_limits<double>::infinity();
    else if (text == "-Infinity")
      value = -std::numeric_limits<double>::infinity();
    else if (stands_for_number(text))
      value = text.substr(1);
  } else if (value.is_list()) {
    for (Value& item : value.as_list()) restore_numbers(item);
  } else if (value.is_dict()) {
    for (auto& [key, item] : value.as_dict()) restore_numbers(item);
  }
}

void flatten_into(Value::Dict& out, const std::string& prefix, const Value& value, char separator) {
  if (!value.is_dict()) {
    out.emplace(prefix, value);
    return;
  }
  for (const auto& [key, item] : value.as_dict())
    flatten_into(out, prefix.empty() ? key : fmt::format("{}{}{}", prefix, separator, key), item,
                 separator);
}

}  // namespace

std::string encode(const Value& value) {
  std::string out;
  append(out, value, value.is_list() || value.is_dict() ? 1 : 0);
  return out;
}

void require_shallow(const Value& value, std::string_view what) {
  if (search::is_deeper(value, search::kDeepestValue))
    throw_error(ErrorCode::invalid_argument,
                "{}: its lists and dictionaries are nested more than {} deep; leave the inner ones "
                "out",
                what, search::kDeepestValue);
}

Value decode(std::string_view text, std::string_view origin) {
  auto json = try_parse_json(text);
  // Only text that is not JSON as it is may be of a writer with numbers that JSON lacks.
  if (!json) json = parse_json(with_quoted_numbers(text), origin);
  Value value = search::value_from_json(*json);
  restore_numbers(value);
  return value;
}

std::string encode_point(const search::Point& point) {
  std::string out;
  for (const double entry : point) {
    if (!out.empty()) out += ',';
    if (std::isnan(entry))
      out += "nan";
    else
      fmt::format_to(std::back_inserter(out), "{}", entry);
  }
  return out;
}

search::Point decode_point(std::string_view text) {
  search::Point point;
  while (!text.empty()) {
    double entry = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), entry);
    if (error != std::errc())
      throw_error(ErrorCode::corruption, "'{}' is not a point of a search space", text);
    point.push_back(entry);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  return point;
}

Value::Dict flatten(const Value& value, char separator) {
  Value::Dict out;
  if (value.is_dict()) flatten_into(out, "", value, separator);
  return out;
}

}  // namespace kolo::tune
