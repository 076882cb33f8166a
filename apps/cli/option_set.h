// The options of one command, tied to the places of their values, and how they are read.
//
// A value is taken from the command line, else from a variable (KOLO_…, then HOROVOD_…), else from
// the file that an option names, else it stays as it is.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "cli/option.h"

namespace kolo::cli {

using Arguments = std::vector<std::string>;

class OptionSet {
 public:
  struct Row {
    OptionText text;
    ValueRef value;
    std::string_view heading;  ///< in the help
    std::string initial;       ///< the default as text
    std::vector<std::string> given{};
    std::string source{};  ///< "--hosts", "KOLO_HOSTS" or "job.yaml: hosts"; "" = not given

    [[nodiscard]] bool is_list() const noexcept {
      return std::holds_alternative<std::vector<std::string>*>(value);
    }
    /// Lists grow; of other values the last one counts.
    void take(std::vector<std::string> texts, std::string_view from);
  };

  OptionSet() = default;
  /// Keeps `values` for as long as it lives itself.
  explicit OptionSet(std::shared_ptr<void> values) : values_(std::move(values)) {}

  template <class V, std::size_t N>
  void add(std::string_view heading, const Option<V> (&rows)[N], V& values);
  void add(std::string_view heading, const OptionText& text, ValueRef value);
  /// `--config-file`, for a command that has options and no file of its own.
  void add_config_file();
  /// Sections of a file that are said to be unused instead of being an error.
  void pass_over(std::span<const std::string_view> sections) { unused_sections_ = sections; }

  /// Throws invalid_argument. After `--help` nothing but that is looked at. `usage` is shown when
  /// an argument is missing.
  void read(const Arguments& arguments, std::string_view usage = {});

  [[nodiscard]] bool wants_help() const noexcept { return wants_help_; }
  [[nodiscard]] const std::vector<Row>& rows() const noexcept { return rows_; }
  /// The argument that a word would be, or null.
  [[nodiscard]] Row* next_positional(std::string_view word);
  /// The option, or null. `typed` is one word without its "=value". Throws invalid_argument for
  /// the beginning of several options.
  [[nodiscard]] Row* find(std::string_view typed);
  [[nodiscard]] bool has(std::string_view name) const;
  /// A row by its own name. It must exist.
  [[nodiscard]] const Row& at(std::string_view name) const;
  [[nodiscard]] bool given(std::string_view name) const { return !at(name).source.empty(); }
  /// Whether it was typed, and not found in a variable or a file.
  [[nodiscard]] bool typed(std::string_view name) const { return at(name).source.starts_with('-'); }

  /// The words that were read.
  [[nodiscard]] const Arguments& arguments() const noexcept { return arguments_; }
  [[nodiscard]] void* values() const noexcept { return values_.get(); }

 private:
  void read_arguments(const Arguments& arguments);
  /// Returns how many further words it took.
  std::size_t take_option(std::span<const std::string> arguments);
  void take_word(const std::string& word);
  void take_rest(std::span<const std::string> words);
  void read_environment();
  void read_file(const std::string& path);
  /// "; did you mean params.fusion-threshold-mb?", or nothing.
  [[nodiscard]] std::string near_key(const std::string& key) const;
  void read_key(const std::string& key, const Json& value, const std::string& file);
  void check_name(const Row& row) const;
  void require(std::string_view usage) const;

  std::shared_ptr<void> values_;
  std::shared_ptr<std::string> config_file_ = std::make_shared<std::string>();
  std::vector<Row> rows_;
  Arguments arguments_;
  std::span<const std::string_view> unused_sections_;
  bool wants_help_ = false;
};

/// Puts texts into the place of a value. Throws invalid_argument, naming `source`.
void set_value(const OptionText& text, ValueRef value, const std::vector<std::string>& given,
               std::string_view source);
/// The value as one would type it; "" for what is not set, for lists and for flags.
std::string value_text(ValueRef value);

/// Every command has it.
const OptionText& help_option();

/// Options and keys may be written with _ for -.
std::string dashed(std::string_view name);

/// The parts of a text between separators, without empty ones.
std::vector<std::string> split(std::string_view text, char separator);

template <class V, std::size_t N>
void OptionSet::add(std::string_view heading, const Option<V> (&rows)[N], V& values) {
  for (const auto& row : rows)
    add(heading, {row.name, row.value, row.help, row.details},
        std::visit([&values](auto member) { return ValueRef(&(values.*member)); }, row.member));
}

}  // namespace kolo::cli
