#include "tune/trial/shown_config.h"

#include <gtest/gtest.h>

namespace kolo::tune {
namespace {

using search::Value;

TEST(ShownConfig, HasWhatWasSuggested) {
  const Value suggestion(Value::Dict{{"x", 0.5}, {"net", Value(Value::Dict{{"units", 8}})}});
  const Value config(Value::Dict{{"__kolo_number__", 3}, {"__kolo_suggestion__", suggestion}});
  EXPECT_EQ(shown_config(config), suggestion);
  EXPECT_EQ(flat_config(config), (Value::Dict{{"net/units", 8}, {"x", 0.5}}));
}

TEST(ShownConfig, HasWhatWasChosenOnEachLevel) {
  const auto choice = [](std::int64_t place, Value::List options) {
    return Value(
        Value::Dict{{"__kolo_choice__", place}, {"__kolo_options__", Value(std::move(options))}});
  };
  const Value config(Value::Dict{{"o", choice(1, {Value(1), choice(0, {Value("deep")})})}});
  EXPECT_EQ(shown_config(config), Value(Value::Dict{{"o", "deep"}}));
  // Not what the package writes: it stays as it is.
  const Value other(Value::Dict{{"o", choice(7, {Value(1)})}});
  EXPECT_EQ(shown_config(other), other);
}

TEST(ShownConfig, PathsAreThoseOfWhatIsShown) {
  EXPECT_EQ(shown_path("net/units"), "net/units");
  EXPECT_EQ(shown_path("__kolo_number__"), "");
  EXPECT_EQ(shown_path("__kolo_suggestion__/net/units"), "net/units");
  EXPECT_EQ(shown_path("o/__kolo_choice__"), "o");
  EXPECT_EQ(shown_path("o/__kolo_options__/1/units"), "o/units");
}

}  // namespace
}  // namespace kolo::tune
