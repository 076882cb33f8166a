#include "tune/output/row_filter.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/errors.h"
#include "base/registry.h"

namespace kolo::tune {
namespace {

constexpr std::string_view kOperatorLetters = "<>=!";

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

}  // namespace

std::size_t column_of(std::span<const std::string> columns, const std::string& name) {
  for (const std::string& candidate : {name, "config/" + name}) {
    const auto found = std::find(columns.begin(), columns.end(), candidate);
    if (found != columns.end()) return static_cast<std::size_t>(found - columns.begin());
  }
  const std::vector<std::string_view> known(columns.begin(), columns.end());
  throw_unknown_name("column", name, known, ErrorCode::invalid_argument);
}

std::vector<Condition> parse_conditions(const std::string& text,
                                        std::span<const std::string> columns,
                                        const std::function<bool(std::size_t)>& numbers_alone) {
  std::vector<Condition> all;
  for (const auto& part : split_at_and(text)) {
    const std::string condition = trimmed(part);
    const auto at = condition.find_first_of(kOperatorLetters);
    if (at == std::string::npos) refuse_condition(condition, "there is no comparison in it");
    const auto behind =
        std::min(condition.find_first_not_of(kOperatorLetters, at), condition.size());
    auto op = condition.substr(at, behind - at);
    if (op == "=") op = "==";
    constexpr std::string_view kKnown[] = {"==", "!=", "<", "<=", ">", ">="};
    if (std::find(std::begin(kKnown), std::end(kKnown), op) == std::end(kKnown))
      refuse_condition(condition, fmt::format("there is no operator '{}'", op));
    const auto column = column_of(columns, trimmed(condition.substr(0, at)));

    std::string wanted = trimmed(condition.substr(behind));
    if (wanted.empty()) refuse_condition(condition, fmt::format("nothing follows '{}'", op));
    if (wanted.size() > 1 && (wanted[0] == '\'' || wanted[0] == '"') &&
        wanted.back() == wanted[0]) {
      all.emplace_back(column, op, wanted.substr(1, wanted.size() - 2), std::nullopt);
      continue;
    }
    if (wanted.find_first_of(" <>=!") != std::string::npos)
      refuse_condition(condition, fmt::format("'{}' is not one value; put texts with blanks into "
                                              "quotes",
                                              wanted));
    const auto number = number_in(wanted);
    if (!number && numbers_alone(column))
      refuse_condition(condition, fmt::format("the column '{}' has numbers, and '{}' is none",
                                              columns[column], wanted));
    all.emplace_back(column, op, std::move(wanted), number);
  }
  return all;
}

bool Condition::holds(const Value& value) const {
  if (value.is_nothing()) return false;
  int order = 0;
  if (value.is_number() && number_) {
    const double left = value.as_number();
    if (std::isnan(left) || std::isnan(*number_)) {
      const bool same = std::isnan(left) && std::isnan(*number_);
      return op_ == "==" ? same : op_ == "!=" && !same;
    }
    order = left < *number_ ? -1 : left > *number_ ? 1 : 0;
  } else {
    order = (value.is_string() ? value.as_string() : value.to_string()).compare(wanted_);
  }
  if (op_ == "==") return order == 0;
  if (op_ == "!=") return order != 0;
  if (op_ == "<") return order < 0;
  if (op_ == "<=") return order <= 0;
  return op_ == ">" ? order > 0 : order >= 0;
}

void keep_rows(Table& table, const std::string& conditions) {
  const auto all = parse_conditions(conditions, table.columns, [&](std::size_t column) {
    return has_numbers_alone(table, column);
  });
  std::erase_if(table.rows, [&](const std::vector<Value>& row) {
    return !std::all_of(all.begin(), all.end(),
                        [&](const Condition& one) { return one.holds(row[one.column()]); });
  });
}

}  // namespace kolo::tune
