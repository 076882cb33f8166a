#include "tune/output/row_filter.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/errors.h"
#include "base/registry.h"

namespace kolo::tune {
namespace {

constexpr std::string_view kOperatorLetters = "<>=!";

struct Comparison {
  std::size_t column = 0;
  std::string op;
  std::string wanted;
  std::optional<double> number{};  // what `wanted` says, if it is one

  [[nodiscard]] bool holds(const Value& value) const;
};

[[noreturn]] void refuse_condition(const std::string& condition, const std::string& why) {
  throw_error(ErrorCode::invalid_argument,
              "--filter '{}': {}; a condition is COLUMN OPERATOR VALUE, as in 'loss < 0.3', and "
              "several are joined by 'and'",
              condition, why);
}

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(' ') + 1 - first));
}

/// The parts between words `and` that stand outside of quotes.
std::vector<std::string> split_at_and(std::string_view text) {
  constexpr std::string_view kAnd = " and ";
  std::vector<std::string> parts(1);
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quote == 0 && text.substr(i).starts_with(kAnd)) {
      parts.emplace_back();
      i += kAnd.size() - 1;
      continue;
    }
    if (text[i] == quote)
      quote = 0;
    else if (quote == 0 && (text[i] == '\'' || text[i] == '"'))
      quote = text[i];
    parts.back() += text[i];
  }
  return parts;
}

std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' ? std::optional(number) : std::nullopt;
}

bool has_numbers_alone(const Table& table, std::size_t column) {
  bool any = false;
  for (const auto& row : table.rows) {
    if (row[column].is_nothing()) continue;
    if (!row[column].is_number()) return false;
    any = true;
  }
  return any;
}

Comparison parse_condition(const Table& table, const std::string& condition) {
  const auto at = condition.find_first_of(kOperatorLetters);
  if (at == std::string::npos) refuse_condition(condition, "there is no comparison in it");
  const auto behind = std::min(condition.find_first_not_of(kOperatorLetters, at), condition.size());
  Comparison comparison;
  comparison.op = condition.substr(at, behind - at);
  if (comparison.op == "=") comparison.op = "==";
  constexpr std::string_view kKnown[] = {"==", "!=", "<", "<=", ">", ">="};
  if (std::find(std::begin(kKnown), std::end(kKnown), comparison.op) == std::end(kKnown))
    refuse_condition(condition, fmt::format("there is no operator '{}'", comparison.op));
  comparison.column = column_of(table, trimmed(condition.substr(0, at)));

  std::string& wanted = comparison.wanted = trimmed(condition.substr(behind));
  if (wanted.empty())
    refuse_condition(condition, fmt::format("nothing follows '{}'", comparison.op));
  if (wanted.size() > 1 && (wanted[0] == '\'' || wanted[0] == '"') && wanted.back() == wanted[0]) {
    wanted = wanted.substr(1, wanted.size() - 2);
    return comparison;
  }
  if (const auto extra = wanted.find_first_of(" <>=!"); extra != std::string::npos)
    refuse_condition(
        condition, fmt::format("'{}' is not one value; put texts with blanks into quotes", wanted));
  comparison.number = number_in(wanted);
  if (!comparison.number && has_numbers_alone(table, comparison.column))
    refuse_condition(condition, fmt::format("the column '{}' has numbers, and '{}' is none",
                                            table.columns[comparison.column], wanted));
  return comparison;
}

bool Comparison::holds(const Value& value) const {
  if (value.is_nothing()) return false;
  int order = 0;
  if (value.is_number() && number) {
    const double left = value.as_number();
    if (std::isnan(left) || std::isnan(*number)) {
      const bool same = std::isnan(left) && std::isnan(*number);
      return op == "==" ? same : op == "!=" && !same;
    }
    order = left < *number ? -1 : left > *number ? 1 : 0;
  } else {
    order = (value.is_string() ? value.as_string() : value.to_string()).compare(wanted);
  }
  if (op == "==") return order == 0;
  if (op == "!=") return order != 0;
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  return op == ">" ? order > 0 : order >= 0;
}

}  // namespace

std::size_t column_of(const Table& table, const std::string& name) {
  for (const std::string& candidate : {name, "config/" + name}) {
    const auto found = std::find(table.columns.begin(), table.columns.end(), candidate);
    if (found != table.columns.end())
      return static_cast<std::size_t>(found - table.columns.begin());
  }
  std::vector<std::string_view> known(table.columns.begin(), table.columns.end());
  throw_unknown_name("column", name, known, ErrorCode::invalid_argument);
}

void keep_rows(Table& table, const std::string& conditions) {
  std::vector<Comparison> all;
  for (const auto& condition : split_at_and(conditions))
    all.push_back(parse_condition(table, trimmed(condition)));
  std::erase_if(table.rows, [&](const std::vector<Value>& row) {
    return !std::all_of(all.begin(), all.end(),
                        [&](const Comparison& one) { return one.holds(row[one.column]); });
  });
}

}  // namespace kolo::tune
