// yaml-cpp parses; Converter turns its nodes into JSON values. Plain scalars become booleans,
// numbers or text by YAML's rules, quoted ones stay text. Depth and number of nodes are limited,
// since aliases can make a small file expand without end.
#include "base/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/utf8.h"

namespace kolo {
namespace {

/// Aliases can make a small file a huge value, and deep nesting a deep stack.
constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxNodes = 1'000'000;

class Converter {
 public:
  explicit Converter(std::string_view origin) : origin_(origin) {}

  Json convert(const YAML::Node& node, int depth = 0) {
    if (depth > kMaxDepth || ++nodes_ > kMaxNodes)
      refuse(node, "nested too deeply, or too large when its aliases are written out");
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null: return nullptr;
      case YAML::NodeType::Scalar: return scalar(node);
      case YAML::NodeType::Sequence: {
        Json array = Json::array();
        for (const auto& item : node) array.push_back(convert(item, depth + 1));
        return array;
      }
      case YAML::NodeType::Map: {
        Json object = Json::object();
        for (const auto& item : node) {
          if (!item.first.IsScalar()) refuse(item.first, "a key must be plain text");
          const std::string& key = item.first.Scalar();
          if (object.contains(key)) refuse(item.first, fmt::format("key '{}' is repeated", key));
          object[key] = convert(item.second, depth + 1);
        }
        return object;
      }
    }
    refuse(node, "unknown kind of node");
  }

 private:
  [[noreturn]] void refuse(const YAML::Node& node, std::string_view why) const {
    throw_error(ErrorCode::invalid_argument, "{}:{}: {}", origin_, node.Mark().line + 1, why);
  }

  /// yaml-cpp tags a quoted scalar "!" and a plain one "?".
  static Json scalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    if (node.Tag() != "?") return text;
    if (text == "true" || text == "True" || text == "TRUE") return true;
    if (text == "false" || text == "False" || text == "FALSE") return false;
    if (auto integer = whole<std::int64_t>(text)) return *integer;
    if (auto integer = whole<std::uint64_t>(text)) return *integer;
    if (auto number = whole<double>(text)) return *number;
    return text;
  }

  /// The whole text as a T. Words such as "nan" and "infinity" stay words, as in YAML.
  template <class T>
  static std::optional<T> whole(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    if (text.empty() || text.find_first_not_of("0123456789+-.eE") != std::string_view::npos)
      return std::nullopt;
    T value{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
  }

  std::string_view origin_;
  std::size_t nodes_ = 0;
};

/// Hears a document and keeps nothing of it.
class Listener final : public YAML::EventHandler {
 public:
  using Mark = YAML::Mark;
  void OnDocumentStart(const Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const Mark&, YAML::anchor_t) override {}
  void OnAlias(const Mark&, YAML::anchor_t) override {}
  void OnScalar(const Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

/// Without reading on: of a text such as "," yaml-cpp finds empty documents for ever, so that
/// YAML::LoadAll never ends.
bool has_more_than_one_document(std::string_view text) {
  std::istringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  Listener listener;
  return parser.HandleNextDocument(listener) && parser.HandleNextDocument(listener);
}

}  // namespace

Json parse_yaml(std::string_view text, std::string_view origin) {
  if (!is_plain_utf8(text))
    throw_error(ErrorCode::invalid_argument,
                "{}: not valid YAML: it is not UTF-8 text, or has zero bytes", origin);
  try {
    if (has_more_than_one_document(text))
      throw_error(ErrorCode::invalid_argument,
                  "{}: several YAML documents in one file; one is "
                  "expected",
                  origin);
    return Converter(origin).convert(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& error) {
    throw_error(ErrorCode::invalid_argument, "{}:{}: not valid YAML: {}", origin,
                error.mark.line + 1, error.msg);
  }
}

Json load_yaml(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
    throw_error(ErrorCode::not_found, "cannot read '{}': there is no such file", file.string());
  if (std::filesystem::is_directory(file, ignored))
    throw_error(ErrorCode::io, "cannot read '{}': it is a directory", file.string());
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw_errno("cannot read '{}'", file.string());
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (stream.bad()) throw_errno("cannot read '{}'", file.string());
  return parse_yaml(text, file.string());
}

}  // namespace kolo
