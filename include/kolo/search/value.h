// What a configuration is made of: null, truth, number, text, lists and dictionaries of these.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kolo::search {

/// An immutable-by-habit tree with value semantics. Whole numbers and other numbers are kept apart
/// (1 is not 1.0 in text), but compare equal when they are the same number.
class Value {
 public:
  using List = std::vector<Value>;
  using Dict = std::map<std::string, Value, std::less<>>;

  Value() = default;  ///< nothing (null)
  template <std::same_as<bool> T>
  Value(T truth) : data_(truth) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Value(T number) : data_(static_cast<std::int64_t>(number)) {}
  Value(double number) : data_(number) {}
  Value(const char* text) : data_(std::string(text)) {}
  Value(std::string_view text) : data_(std::string(text)) {}
  Value(std::string text) : data_(std::move(text)) {}
  Value(List items) : data_(std::move(items)) {}
  Value(Dict items) : data_(std::move(items)) {}
  /// A dictionary: Value{{"lr", 0.1}, {"layers", 3}}.
  Value(std::initializer_list<Dict::value_type> items) : data_(Dict(items)) {}

  [[nodiscard]] bool is_nothing() const noexcept { return data_.index() == 0; }
  [[nodiscard]] bool is_bool() const noexcept { return data_.index() == 1; }
  [[nodiscard]] bool is_integer() const noexcept { return data_.index() == 2; }
  /// Whole numbers too.
  [[nodiscard]] bool is_number() const noexcept { return data_.index() == 2 || data_.index() == 3; }
  [[nodiscard]] bool is_string() const noexcept { return data_.index() == 4; }
  [[nodiscard]] bool is_list() const noexcept { return data_.index() == 5; }
  [[nodiscard]] bool is_dict() const noexcept { return data_.index() == 6; }

  /// Each throws invalid_argument, saying what the value is instead.
  [[nodiscard]] bool as_bool() const;
  [[nodiscard]] std::int64_t as_integer() const;  ///< 3.0 is a whole number, 3.5 is not
  [[nodiscard]] double as_number() const;
  [[nodiscard]] const std::string& as_string() const;
  [[nodiscard]] const List& as_list() const;
  [[nodiscard]] const Dict& as_dict() const;
  List& as_list();
  Dict& as_dict();

  /// The part at "model/layers/2/units" (list indices are path elements); null pointer if there is
  /// none. The empty path is the value itself.
  [[nodiscard]] const Value* find_path(std::string_view path) const;
  /// As above. Throws not_found, naming the path and how far it led.
  [[nodiscard]] const Value& at_path(std::string_view path) const;

  /// As JSON, keys sorted, numbers shortest. Not-a-number and infinities read NaN and Infinity.
  [[nodiscard]] std::string to_string() const;

  /// Numbers are equal when they are the same number, whatever their type.
  friend bool operator==(const Value& left, const Value& right);
  /// A total order: by type (nothing, bool, numbers, text, lists, dictionaries), then by content.
  friend bool operator<(const Value& left, const Value& right);

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Dict> data_;
};

}  // namespace kolo::search
