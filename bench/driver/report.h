// What a bench prints: a table of all medians, then one RATIO line per comparison.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace bench {

/// "8B", "16KB", "1MB".
std::string size_name(std::size_t bytes);

class Report {
 public:
  /// One more observation (the median of one round) of a cell; cells show the median over rounds.
  void add(const std::string& column, std::size_t bytes, double seconds);

  /// Median over rounds in seconds; NaN if never measured.
  [[nodiscard]] double get(const std::string& column, std::size_t bytes) const;

  /// The smallest of several columns; NaN if none was measured.
  [[nodiscard]] double best(const std::vector<std::string>& columns, std::size_t bytes) const;

  /// Median over rounds of a column's time by the smallest of `others` in the same round: for
  /// what the machine itself makes faster or slower from one second to the next.
  [[nodiscard]] double by_round(const std::string& column, const std::vector<std::string>& others,
                                std::size_t bytes) const;

  void print_table(const std::string& title) const;

  /// `RATIO name value goal <=goal PASS|FALLS-SHORT`. A value that could not be measured (NaN)
  /// prints as "nan" and falls short.
  void ratio(const std::string& name, double value, double goal);

  /// A figure without a goal, for the table and the JSON file.
  void note(const std::string& name, double value, const std::string& unit);

  void write_json(const std::string& path) const;

 private:
  /// What was added to a cell, in order.
  [[nodiscard]] const std::vector<double>& rounds(const std::string& column,
                                                  std::size_t bytes) const;

  struct Ratio {
    std::string name;
    double value, goal;
    bool pass;
  };
  std::vector<std::string> columns_;
  std::map<std::string, std::map<std::size_t, std::vector<double>>> cells_;
  std::vector<Ratio> ratios_;
  std::map<std::string, double> notes_;
};

/// A line of warning if other work disturbs the machine.
void warn_if_busy();

}  // namespace bench
