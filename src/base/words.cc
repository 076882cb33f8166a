#include "base/words.h"

#include "base/errors.h"

namespace kolo {

std::vector<std::string> split_words(std::string_view text, std::string_view what) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;  // of a word, perhaps an empty quoted one
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool more = i + 1 < text.size();
    if (quote == '\'') {
      if (c == '\'')
        quote = '\0';
      else
        word += c;
    } else if (c == '\\' && more) {
      const char next = text[++i];
      // Between double quotes a backslash is one unless it stands before one of these.
      if (quote == '"' && next != '"' && next != '\\' && next != '$' && next != '`') word += c;
      word += next;
      inside = true;
    } else if (quote == '"') {
      if (c == '"')
        quote = '\0';
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (quote != '\0') throw_error(ErrorCode::invalid_argument, "{}: a {} has no end", what, quote);
  if (inside) words.push_back(std::move(word));
  return words;
}

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(word);
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'')
      text += "'\\''";
    else
      text += c;
  }
  return text + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) line += (line.empty() ? "" : " ") + shell_quoted(word);
  return line;
}

std::string absolute_program(const std::string& word, const std::filesystem::path& directory) {
  if (word.find('/') == std::string::npos) return word;
  return (std::filesystem::absolute(directory) / word).lexically_normal().string();
}

}  // namespace kolo
