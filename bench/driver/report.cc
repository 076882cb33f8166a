#include "driver/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "driver/contender.h"
#include "driver/process.h"
#include "support/median.h"

namespace bench {

std::string size_name(std::size_t bytes) {
  if (bytes >= 1 << 20) return std::to_string(bytes >> 20) + "MB";
  if (bytes >= 1 << 10) return std::to_string(bytes >> 10) + "KB";
  return std::to_string(bytes) + "B";
}

void Report::add(const std::string& column, std::size_t bytes, double seconds) {
  if (std::find(columns_.begin(), columns_.end(), column) == columns_.end()) {
    columns_.push_back(column);
  }
  cells_[column][bytes].push_back(seconds);
}

const std::vector<double>& Report::rounds(const std::string& column, std::size_t bytes) const {
  static const std::vector<double> none;
  const auto rows = cells_.find(column);
  if (rows == cells_.end()) return none;
  const auto cell = rows->second.find(bytes);
  return cell == rows->second.end() ? none : cell->second;
}

double Report::get(const std::string& column, std::size_t bytes) const {
  const auto& all = rounds(column, bytes);
  return all.empty() ? std::nan("") : median(all);
}

double Report::by_round(const std::string& column, const std::vector<std::string>& others,
                        std::size_t bytes) const {
  std::vector<double> ratios;
  const auto& own = rounds(column, bytes);
  for (std::size_t round = 0; round < own.size(); ++round) {
    double best = std::nan("");
    for (const auto& other : others)
      if (const auto& all = rounds(other, bytes); round < all.size())
        best = std::fmin(best, all[round]);
    if (!std::isnan(best)) ratios.push_back(own[round] / best);
  }
  return ratios.empty() ? std::nan("") : median(ratios);
}

double Report::best(const std::vector<std::string>& columns, std::size_t bytes) const {
  double best = std::nan("");
  for (const auto& column : columns) best = std::fmin(best, get(column, bytes));
  return best;
}

void Report::print_table(const std::string& title) const {
  std::set<std::size_t> sizes;
  for (const auto& [column, rows] : cells_) {
    for (const auto& [bytes, values] : rows) sizes.insert(bytes);
  }
  std::printf("%s; median µs per allreduce\n%8s", title.c_str(), "");
  for (const auto& column : columns_) std::printf(" %14s", column.c_str());
  std::printf("\n");
  for (const std::size_t bytes : sizes) {
    std::printf("%8s", size_name(bytes).c_str());
    for (const auto& column : columns_) {
      const double us = get(column, bytes) * 1e6;
      if (std::isnan(us)) {
        std::printf(" %14s", "-");
      } else {
        std::printf(" %14.*f", us < 10 ? 3 : us < 1000 ? 1 : 0, us);
      }
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

void Report::ratio(const std::string& name, double value, double goal) {
  const bool pass = value <= goal;
  ratios_.push_back({name, value, goal, pass});
  std::printf("RATIO %s %.3g goal <=%g %s\n", name.c_str(), value, goal,
              pass ? "PASS" : "FALLS-SHORT");
  std::fflush(stdout);
}

void Report::note(const std::string& name, double value, const std::string& unit) {
  notes_[name] = value;
  std::printf("%s %.4g %s\n", name.c_str(), value, unit.c_str());
}

void Report::write_json(const std::string& path) const {
  auto number = [](double value) {
    return std::isnan(value) ? nlohmann::json() : nlohmann::json(value);
  };
  nlohmann::json json;
  json["version"] = 1;
  for (const auto& column : columns_) {
    for (const auto& [bytes, rounds] : cells_.at(column)) {
      json["seconds"][column][size_name(bytes)] = {{"median", number(median(rounds))},
                                                   {"rounds", rounds}};
    }
  }
  for (const auto& ratio : ratios_) {
    json["ratios"][ratio.name] = {
        {"value", number(ratio.value)}, {"goal", ratio.goal}, {"pass", ratio.pass}};
  }
  for (const auto& [name, value] : notes_) json["notes"][name] = number(value);
  std::ofstream(path) << json.dump(2) << '\n';
}

void warn_if_busy() {
  double load = 0;
  getloadavg(&load, 1);
  const double busy = busy_share(0.3);
  if (busy > 0.05 || load > 0.7) {
    std::printf(
        "WARNING: the machine is busy (load average %.2f, %.0f %% of its CPU time in use): "
        "figures are disturbed\n",
        load, busy * 100);
    std::fflush(stdout);
  }
}

}  // namespace bench
