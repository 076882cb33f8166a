#include "dashboard/column.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/text_table.h"

namespace kolo::dashboard {
namespace {

/// In letters.
constexpr std::size_t kLongestText = 4096;

/// A long text, and what is long as a text, as the beginning of it.
search::Value cut(const search::Value& value) {
  std::string text = value.is_string() ? value.as_string() : value.to_string();
  if (text.size() <= kLongestText) return value;
  return shortened(text, kLongestText);
}

}  // namespace

void Column::set(std::size_t row, const search::Value& value) {
  const bool number = value.is_number() && std::isfinite(value.as_number());
  has_numbers_ = has_numbers_ || number;
  const std::uint32_t word = number || value.is_nothing() ? 0 : refer_to(cut(value));
  if (row >= numbers_.size()) numbers_.resize(row + 1, kNoNumber);
  numbers_[row] = number ? value.as_number() : kNoNumber;
  if (word != 0 && row >= words_.size()) words_.resize(row + 1, 0);
  if (row >= words_.size()) return;
  forget(std::exchange(words_[row], word));
}

std::uint32_t Column::refer_to(const search::Value& value) {
  const auto [known, is_new] = known_.try_emplace(value.to_string(), 0);
  if (is_new && free_.empty()) {
    others_.emplace_back();
    known->second = static_cast<std::uint32_t>(others_.size());
  } else if (is_new) {
    known->second = free_.back();
    free_.pop_back();
  }
  Other& other = others_[known->second - 1];
  if (is_new) other.value = value;
  ++other.cells;
  return known->second;
}

void Column::forget(std::uint32_t word) {
  if (word == 0 || --others_[word - 1].cells > 0) return;
  known_.erase(others_[word - 1].value.to_string());
  others_[word - 1].value = {};
  free_.push_back(word);
}

search::Value Column::at(std::size_t row) const {
  if (row < words_.size() && words_[row] != 0) return others_[words_[row] - 1].value;
  const double number = this->number(row);
  if (std::isnan(number)) return {};
  constexpr double kExact = 9007199254740992;  // 2^53: whole numbers up to here are exact
  if (number == std::floor(number) && std::abs(number) < kExact)
    return static_cast<std::int64_t>(number);
  return number;
}

void Column::filter(const tune::Condition& condition, std::vector<char>& marks) const {
  std::vector<char> holds(others_.size());
  for (std::size_t i = 0; i < others_.size(); ++i)
    holds[i] = others_[i].cells > 0 && condition.holds(others_[i].value) ? 1 : 0;
  for (std::size_t row = 0; row < marks.size(); ++row) {
    if (marks[row] == 0) continue;
    if (row < words_.size() && words_[row] != 0)
      marks[row] = holds[words_[row] - 1];
    else
      marks[row] = !std::isnan(number(row)) && condition.holds(numbers_[row]) ? 1 : 0;
  }
}

void Column::sort(std::vector<std::uint32_t>& rows, bool descending, std::size_t most) const {
  // Others by rank, behind all numbers. What is not a number by its nature has no place in an
  // order.
  std::vector<std::uint32_t> order(others_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](auto left, auto right) { return others_[left].value < others_[right].value; });
  std::vector<double> rank(others_.size());
  for (std::size_t place = 0; place < order.size(); ++place)
    rank[order[place]] =
        others_[order[place]].value.is_number() ? kNoNumber : static_cast<double>(place);

  struct Key {
    double value;
    std::uint32_t row;
    std::uint8_t kind;  // 0 number, 1 other, 2 nothing
  };
  std::vector<Key> keys;
  keys.reserve(rows.size());
  for (const std::uint32_t row : rows) {
    const bool other = row < words_.size() && words_[row] != 0;
    const double value = other ? rank[words_[row] - 1] : number(row);
    const int kind = std::isnan(value) ? 2 : other ? 1 : 0;
    keys.push_back({value, row, static_cast<std::uint8_t>(kind)});
  }
  const auto before = [descending](const Key& left, const Key& right) {
    if ((left.kind == 2) != (right.kind == 2)) return right.kind == 2;
    if (left.kind != right.kind) return (left.kind < right.kind) != descending;
    if (left.kind != 2 && left.value != right.value)
      return descending ? right.value < left.value : left.value < right.value;
    return left.row < right.row;
  };
  if (most < keys.size() / 16)
    std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(most), keys.end(),
                      before);
  else
    std::sort(keys.begin(), keys.end(), before);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = keys[i].row;
}

}  // namespace kolo::dashboard
