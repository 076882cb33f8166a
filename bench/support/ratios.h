// What benches print for each comparison, one line each:
//   RATIO <name> <value> goal <op><goal> PASS|FALLS-SHORT
// A value that could not be measured (NaN) falls short.
#pragma once

#include <cstdio>
#include <fstream>
#include <string>

namespace bench {

class Ratios {
 public:
  /// `op` is "<=" or ">=".
  void print(const std::string& name, double value, const char* op, double goal) {
    const bool pass = op[0] == '<' ? value <= goal : value >= goal;
    std::printf("RATIO %s %.4g goal %s%g %s\n", name.c_str(), value, op, goal,
                pass ? "PASS" : "FALLS-SHORT");
    std::fflush(stdout);
    lines_ += (lines_.empty() ? "  \"" : ",\n  \"") + name + "\": " + std::to_string(value);
  }

  /// All values by name; nothing is written for an empty path.
  void write_json(const std::string& path) const {
    if (!path.empty()) std::ofstream(path) << "{\n" << lines_ << "\n}\n";
  }

 private:
  std::string lines_;
};

/// Whether a name is in a list a,b,c; every name is in an empty one.
inline bool is_wanted(const std::string& name, const std::string& only) {
  return only.empty() || ("," + only + ",").find("," + name + ",") != std::string::npos;
}

}  // namespace bench
