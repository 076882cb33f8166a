// Two whole numbers are compared as integers, because doubles are not exact above 2^53. A whole
// number and another number are compared as doubles. Everything else is compared by std::variant:
// first by the index of the type, then by content, where lists and dictionaries come back to these
// operators. at_path() searches again with shorter and shorter paths only when it fails, to name in
// the error how far the path led. Text output adds ".0" to numbers that would otherwise read as
// whole ones.
#include "kolo/search/value.h"

#include <charconv>
#include <cmath>

#include "base/errors.h"
#include "search/space/path.h"

namespace kolo::search {
namespace {

const char* const kTypeNames[] = {"nothing", "a truth value", "a whole number", "a number",
                                  "text",    "a list",        "a dictionary"};

template <class Data>
[[noreturn]] void throw_type(const Data& data, const char* wanted) {
  throw_error(ErrorCode::invalid_argument, "expected {}, found {}", wanted,
              kTypeNames[data.index()]);
}

void write_text(std::string& out, const std::string& text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      out += c;
  }
  out += '"';
}

void write_number(std::string& out, double number) {
  if (std::isnan(number)) {
    out += "NaN";
  } else if (std::isinf(number)) {
    out += number > 0 ? "Infinity" : "-Infinity";
  } else {
    const std::size_t before = out.size();
    fmt::format_to(std::back_inserter(out), "{}", number);
    // Keep 1.0 apart from 1.
    if (out.find_first_of(".e", before) == std::string::npos) out += ".0";
  }
}

void write(std::string& out, const Value& value) {
  if (value.is_nothing()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_integer()) {
    out += std::to_string(value.as_integer());
  } else if (value.is_number()) {
    write_number(out, value.as_number());
  } else if (value.is_string()) {
    write_text(out, value.as_string());
  } else if (value.is_list()) {
    out += '[';
    const char* separator = "";
    for (const Value& item : value.as_list()) {
      out += separator;
      write(out, item);
      separator = ", ";
    }
    out += ']';
  } else {
    out += '{';
    const char* separator = "";
    for (const auto& [key, item] : value.as_dict()) {
      out += separator;
      write_text(out, key);
      out += ": ";
      write(out, item);
      separator = ", ";
    }
    out += '}';
  }
}

}  // namespace

bool Value::as_bool() const {
  if (const bool* truth = std::get_if<bool>(&data_)) return *truth;
  throw_type(data_, "a truth value");
}

std::int64_t Value::as_integer() const {
  if (const auto* number = std::get_if<std::int64_t>(&data_)) return *number;
  if (const double* number = std::get_if<double>(&data_);
      number != nullptr && *number == std::floor(*number) && std::abs(*number) < 9.2e18)
    return static_cast<std::int64_t>(*number);
  throw_type(data_, "a whole number");
}

double Value::as_number() const {
  if (const double* number = std::get_if<double>(&data_)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&data_)) return static_cast<double>(*number);
  throw_type(data_, "a number");
}

const std::string& Value::as_string() const {
  if (const auto* text = std::get_if<std::string>(&data_)) return *text;
  throw_type(data_, "text");
}

const Value::List& Value::as_list() const {
  if (const auto* items = std::get_if<List>(&data_)) return *items;
  throw_type(data_, "a list");
}

const Value::Dict& Value::as_dict() const {
  if (const auto* items = std::get_if<Dict>(&data_)) return *items;
  throw_type(data_, "a dictionary");
}

Value::List& Value::as_list() { return const_cast<List&>(std::as_const(*this).as_list()); }
Value::Dict& Value::as_dict() { return const_cast<Dict&>(std::as_const(*this).as_dict()); }

const Value* Value::find_path(std::string_view path) const {
  const Value* here = this;
  for (PathWalk walk(path); !walk.done();) {
    const std::string_view key = walk.next();
    if (const auto* dict = std::get_if<Dict>(&here->data_)) {
      const auto found = dict->find(key);
      if (found == dict->end()) return nullptr;
      here = &found->second;
    } else if (const auto* list = std::get_if<List>(&here->data_)) {
      const auto index = list_index(key);
      if (!index || *index >= list->size()) return nullptr;
      here = &(*list)[*index];
    } else {
      return nullptr;
    }
  }
  return here;
}

const Value& Value::at_path(std::string_view path) const {
  if (const Value* found = find_path(path)) return *found;
  std::string_view reached = path;
  while (!reached.empty() && find_path(reached) == nullptr)
    reached = reached.substr(0, std::min(reached.rfind('/'), reached.size() - 1));
  throw_error(ErrorCode::not_found,
              "the configuration has no '{}'; the last part of this path that exists is '{}'", path,
              find_path(reached) != nullptr ? reached : "");
}

std::string Value::to_string() const {
  std::string out;
  write(out, *this);
  return out;
}

bool operator==(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    if (left.is_integer() && right.is_integer()) return left.as_integer() == right.as_integer();
    return left.as_number() == right.as_number();
  }
  return left.data_ == right.data_;
}

bool operator<(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    if (left.is_integer() && right.is_integer()) return left.as_integer() < right.as_integer();
    return left.as_number() < right.as_number();
  }
  return left.data_ < right.data_;
}

}  // namespace kolo::search
