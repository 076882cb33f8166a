#include "tune/output/packed_column.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/base64.h"

namespace kolo::tune {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kPlacesInOneByte = 256;
constexpr std::size_t kPlacesInTwoBytes = 65'536;
/// Integers up to here are exact in four bytes.
constexpr double kExact = 1 << 24;

template <class Number>
std::string packed(const std::vector<Number>& numbers) {
  return base64(std::as_bytes(std::span(numbers)));
}

template <class Number, class Convert>
std::string packed(std::span<const Json> values, Convert convert) {
  std::vector<Number> numbers;
  numbers.reserve(values.size());
  for (const Json& value : values) numbers.push_back(convert(value));
  return packed(numbers);
}

bool is_number_or_nothing(const Json& value) { return value.is_number() || value.is_null(); }

bool fits_four_bytes(const Json& value) {
  if (value.is_null()) return true;
  const double number = value.get<double>();
  if (number == std::floor(number)) return std::abs(number) <= kExact;
  // Below the normal numbers digits are lost.
  return std::abs(number) <= std::numeric_limits<float>::max() &&
         std::abs(number) >= std::numeric_limits<float>::min();
}

double number_of(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

}  // namespace

Json packed_column(std::span<const Json> values) {
  const bool numeric = std::all_of(values.begin(), values.end(), is_number_or_nothing);
  // As texts: true, 1 and 1.0 are equal as JSON, and shown differently.
  std::map<std::string, std::size_t> places;
  const std::size_t most = numeric ? kPlacesInOneByte : kPlacesInTwoBytes;
  Json different = Json::array();
  std::vector<std::uint16_t> place_of_row;
  place_of_row.reserve(values.size());
  for (const Json& value : values) {
    const auto [place, is_new] = places.emplace(json_text(value), different.size());
    if (is_new) different.push_back(value);
    if (different.size() > most) break;
    place_of_row.push_back(static_cast<std::uint16_t>(place->second));
  }
  if (different.size() == 1) return {{"of", std::move(different)}};
  if (different.size() <= kPlacesInOneByte)
    return {{"of", std::move(different)},
            {"u1", packed(std::vector<std::uint8_t>(place_of_row.begin(), place_of_row.end()))}};
  if (different.size() <= most) return {{"of", std::move(different)}, {"u2", packed(place_of_row)}};
  if (!numeric) return Json(std::vector<Json>(values.begin(), values.end()));
  if (std::all_of(values.begin(), values.end(), fits_four_bytes))
    return {{"f4", packed<float>(values, [](const Json& value) {
               return static_cast<float>(number_of(value));
             })}};
  return {{"f8", packed<double>(values, number_of)}};
}

}  // namespace kolo::tune
