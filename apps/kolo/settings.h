// Settings of a command: flag, then environment, then file, then default, all from one table.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace kolo::app {

/// One row. The long option's name is also the key in the file.
struct Setting {
  std::string_view option;    ///< "num-proc" for --num-proc
  std::string_view aliases;   ///< further spellings, separated by blanks: "-np -n"
  std::string_view variable;  ///< KOLO_<variable>, else HOROVOD_<variable>; "" = none
  std::string_view value;     ///< what follows the option, for people; "" = a switch
  std::string_view fallback;  ///< the default, for people
  std::string_view help;
  bool repeats = false;  ///< may be given several times
};

/// The values of a table's settings, each with where it came from.
class Settings {
 public:
  /// `arguments` are options only. `config_option` names the setting that holds the file's name;
  /// "" = there is none.
  /// Throws invalid_argument.
  Settings(std::span<const Setting> table, const std::vector<std::string>& arguments,
           std::string_view config_option);

  [[nodiscard]] bool has(std::string_view option) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view option) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view option) const;
  [[nodiscard]] bool flag(std::string_view option) const;
  /// Throw invalid_argument, saying where the value came from.
  [[nodiscard]] std::optional<int> integer(std::string_view option, int least, int most) const;
  [[nodiscard]] std::optional<double> positive_number(std::string_view option) const;
  /// "--num-proc", "KOLO_NUM_PROC" or "job.yaml: num-proc".
  [[nodiscard]] std::string source(std::string_view option) const;

 private:
  struct Value {
    std::vector<std::string> texts;
    std::string source;
  };
  void take_arguments(const std::vector<std::string>& arguments);
  void take_environment();
  void take_file(const std::filesystem::path& path);
  void take_key(const std::string& key, const Json& value, const std::string& file);
  [[nodiscard]] const Value* find(std::string_view option) const;
  void add(std::string_view option, std::vector<std::string> texts, std::string source);

  std::span<const Setting> table_;
  std::map<std::string, Value, std::less<>> values_;
};

/// Cuts a command line into options and what begins with the program's name, and gives options
/// their long names (-np N = --num-proc N). `--` ends the options.
struct SplitArguments {
  std::vector<std::string> options;
  std::vector<std::string> program;
};
SplitArguments split_arguments(std::span<const Setting> table,
                               const std::vector<std::string>& arguments);

/// The table for people, and for the manual in Markdown.
std::string help_text(std::span<const Setting> table);
std::string manual_text(std::span<const Setting> table);

}  // namespace kolo::app
