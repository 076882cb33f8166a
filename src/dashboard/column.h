// One field of all trials of a study.
//
// Numbers lie side by side, eight bytes each. Whatever is not a number is kept once, and cells
// refer to it: a parameter with five choices costs four bytes a trial more, whatever the choices
// are. What no cell refers to any more is forgotten, and long texts are cut: a trial that runs for
// weeks may report another one every second.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "kolo/search/value.h"
#include "tune/output/row_filter.h"

namespace kolo::dashboard {

/// Where there is no number.
inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

class Column {
 public:
  void set(std::size_t row, const search::Value& value);

  /// Nothing where nothing was set.
  [[nodiscard]] search::Value at(std::size_t row) const;
  /// kNoNumber where there is no finite one.
  [[nodiscard]] double number(std::size_t row) const noexcept {
    return row < numbers_.size() ? numbers_[row] : kNoNumber;
  }
  [[nodiscard]] bool has_numbers_alone() const noexcept { return known_.empty(); }
  /// How many different values that are no numbers are kept.
  [[nodiscard]] std::size_t others() const noexcept { return known_.size(); }
  [[nodiscard]] bool has_numbers() const noexcept { return has_numbers_; }
  /// One more than the last row that was set.
  [[nodiscard]] std::size_t size() const noexcept { return numbers_.size(); }

  /// Clears the marks of rows for which the condition does not hold.
  void filter(const tune::Condition& condition, std::vector<char>& marks) const;
  /// Sorts rows by this column, stably; those without a value come last either way. Only the first
  /// `most` need to be in order.
  void sort(std::vector<std::uint32_t>& rows, bool descending, std::size_t most) const;

 private:
  struct Other {
    search::Value value;
    std::size_t cells = 0;  // that refer to it; 0 = the place is free
  };
  std::uint32_t refer_to(const search::Value& value);
  void forget(std::uint32_t word);

  std::vector<double> numbers_;       // NaN: nothing, or what words_ says
  std::vector<std::uint32_t> words_;  // shorter than numbers_ where none follows; 0 = none
  std::vector<Other> others_;
  std::vector<std::uint32_t> free_;  // places in others_, from 1
  bool has_numbers_ = false;
  std::unordered_map<std::string, std::uint32_t> known_;  // as text: place in others_, from 1
};

}  // namespace kolo::dashboard
