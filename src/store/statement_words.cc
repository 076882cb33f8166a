#include "store/statement_words.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/log.h"

namespace kolo::store {
namespace {

struct Words {
  std::string_view statement;  // its first word
  std::string_view before;     // the word in front of the table's name; "" = the first one
  std::string_view doing;
};
constexpr Words kWords[] = {
    {"SELECT", "FROM", "reading from"}, {"INSERT", "INTO", "writing to"},
    {"UPDATE", "", "changing"},         {"DELETE", "FROM", "deleting from"},
    {"COPY", "", "writing to"},
};

/// Words of letters, digits and '_', as far as they matter.
std::vector<std::string> words_in(std::string_view sql) {
  std::vector<std::string> words(1);
  for (const char c : sql) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_')
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  return words;
}

bool is_same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::toupper(x) == std::toupper(y);
  });
}

}  // namespace

std::string words_of_failed(std::string_view sql, std::string_view database) {
  log::debug("{}: this failed: {}", database, sql);
  const auto words = words_in(sql);
  for (const Words& known : kWords) {
    if (!is_same(words.front(), known.statement)) continue;
    auto word = words.begin();
    if (!known.before.empty())
      word =
          std::find_if(word, words.end(), [&](const auto& w) { return is_same(w, known.before); });
    if (word != words.end() && ++word != words.end() && !word->empty())
      return fmt::format("{} {}", known.doing, *word);
  }
  return "changing the database";
}

}  // namespace kolo::store
