// One option or argument of a command, declared as a row of a constant table.
//
//   struct BestOptions {
//     std::string study;
//     std::string mode;
//   };
//   constexpr Option<BestOptions> kBest[] = {
//       {&BestOptions::study, "STUDY", "", "The name of the study."},
//       {&BestOptions::mode, "mode", "min|max", "Whether a small or a large value is good.",
//        choices("min|max")},
//   };
//
// The member's initial value is the default. A name in capital letters is an argument that stands
// for itself; every other name is an option, --mode. The same row feeds the parser, the help, the
// manual and the completion of shells.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kolo::cli {

class OptionSet;

/// A name with a line about it.
struct NamedText {
  std::string name;
  std::string summary{};
};
/// Names that may stand for a value. The set holds what has been typed so far.
using Names = std::vector<NamedText> (*)(const OptionSet& typed);
/// Whether a word may be a value; other words belong to the next argument.
using Fits = bool (*)(std::string_view word);

/// Which words a positional argument takes.
enum class Takes {
  one,        ///< one word; as many as there are, if the member is a list
  program,    ///< its first word ends the options: the words from there on, or after `--`
  separated,  ///< the words after `--` alone
};

/// What few rows need.
struct OptionDetails {
  std::string_view aliases{};    ///< further spellings, separated by blanks: "-np -n"
  std::string_view variables{};  ///< KOLO_<variable>, then HOROVOD_<variable>; blanks between them
  std::string_view keys{};       ///< further names in a file, with blanks between: "logging.level"
  std::string_view fallback{};   ///< the default in words, where the initial value does not say it
  std::string_view choices{};    ///< the only values, separated by |
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  Names names = nullptr;      ///< for completion; what a value means is checked by the command
  bool only_names = false;    ///< no others are taken, and the help lists them
  bool is_optional = false;   ///< of a positional argument
  bool is_needed = false;     ///< of an option
  bool is_file = false;       ///< names a YAML file that holds values of other options
  bool stands_alone = false;  ///< with it, nothing else is needed
  Takes takes = Takes::one;   ///< of a positional argument
  Fits fits = nullptr;
};

struct OptionText {
  std::string_view name;
  /// What follows an option, for people: "SECONDS"; "" = a flag, "X Y" = two words.
  std::string_view value;
  std::string_view help;  ///< a full phrase: what it does, and what the value means
  OptionDetails details{};

  [[nodiscard]] bool is_positional() const noexcept {
    return name.front() >= 'A' && name.front() <= 'Z';
  }
};

/// Where a value is. A flag inverts its bool: `--no-wait` can name a member that is true.
using ValueRef =
    std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*,
                 std::filesystem::path*, std::vector<std::string>*, std::optional<int>*,
                 std::optional<std::int64_t>*, std::optional<double>*, std::optional<std::string>*>;

template <class V>
using Member =
    std::variant<bool V::*, int V::*, std::int64_t V::*, std::uint64_t V::*, double V::*,
                 std::string V::*, std::filesystem::path V::*, std::vector<std::string> V::*,
                 std::optional<int> V::*, std::optional<std::int64_t> V::*,
                 std::optional<double> V::*, std::optional<std::string> V::*>;

/// One row. `V` holds the values; what few rows need follows the help text: least(0),
/// aliases("-n").
template <class V>
struct Option {
  template <class... Details>
  constexpr Option(Member<V> member_, std::string_view name_, std::string_view value_,
                   std::string_view help_, Details... set)
      : member(member_), name(name_), value(value_), help(help_) {
    (set(details), ...);
  }

  Member<V> member;
  std::string_view name;
  std::string_view value;
  std::string_view help;
  OptionDetails details{};
};

/// Fields of OptionDetails, to be written behind the help text of a row.
inline namespace rows {

#define KOLO_OPTION_DETAIL(name, Type)                                \
  constexpr auto name(Type value) {                                   \
    return [value](OptionDetails& details) { details.name = value; }; \
  }
KOLO_OPTION_DETAIL(aliases, std::string_view)
KOLO_OPTION_DETAIL(variables, std::string_view)
KOLO_OPTION_DETAIL(keys, std::string_view)
KOLO_OPTION_DETAIL(fallback, std::string_view)
KOLO_OPTION_DETAIL(choices, std::string_view)
KOLO_OPTION_DETAIL(least, double)
KOLO_OPTION_DETAIL(most, double)
KOLO_OPTION_DETAIL(names, Names)
KOLO_OPTION_DETAIL(takes, Takes)
KOLO_OPTION_DETAIL(fits, Fits)
#undef KOLO_OPTION_DETAIL

constexpr auto only(Names names) {
  return [names](OptionDetails& details) {
    details.names = names;
    details.only_names = true;
  };
}
constexpr auto is_optional = [](OptionDetails& details) { details.is_optional = true; };
constexpr auto is_needed = [](OptionDetails& details) { details.is_needed = true; };
constexpr auto is_file = [](OptionDetails& details) { details.is_file = true; };
constexpr auto stands_alone = [](OptionDetails& details) { details.stands_alone = true; };

}  // namespace rows

}  // namespace kolo::cli
