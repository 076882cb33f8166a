// Values and points as text, for the database and the trial protocol.
#pragma once

#include <string>
#include <string_view>

#include "kolo/search/space.h"
#include "kolo/search/value.h"

namespace kolo::tune {

/// Strict JSON. Numbers that JSON does not have are written as the texts "NaN", "Infinity" and
/// "-Infinity", which decode() turns back into numbers. A text that reads so itself is written with
/// a backslash before it, and bytes of a text that are not UTF-8 as U+FFFD. Throws invalid_argument
/// for what decode() would refuse, because it is nested too deeply.
std::string encode(const search::Value& value);
/// `origin` is named in errors; throws corruption.
search::Value decode(std::string_view text, std::string_view origin);

/// For values from outside. Throws invalid_argument, beginning with `what`, if they are nested more
/// than kDeepestValue deep.
void require_shallow(const search::Value& value, std::string_view what);

/// Shortest decimals separated by commas: the same bits come back. "nan" = inactive.
std::string encode_point(const search::Point& point);
search::Point decode_point(std::string_view text);

/// The leaves of nested dictionaries as "eval/loss" (`separator` between keys); lists are leaves.
search::Value::Dict flatten(const search::Value& value, char separator = '/');

}  // namespace kolo::tune
