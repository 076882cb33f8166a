#include "search/space/json_value.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace kolo::search {

Value value_from_json(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean: return json.get<bool>();
    case Json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
        return json.get<double>();
      [[fallthrough]];
    case Json::value_t::number_integer: return json.get<std::int64_t>();
    case Json::value_t::number_float: return json.get<double>();
    case Json::value_t::string: return json.get<std::string>();
    case Json::value_t::array: {
      Value::List items;
      for (const Json& item : json) items.push_back(value_from_json(item));
      return items;
    }
    case Json::value_t::object: {
      Value::Dict items;
      for (const auto& [key, item] : json.items()) items.emplace(key, value_from_json(item));
      return items;
    }
    default: return {};
  }
}

Json json_from_value(const Value& value) {
  if (value.is_bool()) return value.as_bool();
  if (value.is_integer()) return value.as_integer();
  if (value.is_number()) return value.as_number();
  if (value.is_string()) return value.as_string();
  if (value.is_list()) {
    Json items = Json::array();
    for (const Value& item : value.as_list()) items.push_back(json_from_value(item));
    return items;
  }
  if (value.is_dict()) {
    Json items = Json::object();
    for (const auto& [key, item] : value.as_dict()) items[key] = json_from_value(item);
    return items;
  }
  return nullptr;
}

bool is_deeper(const Value& value, int levels) {
  if (value.is_list()) {
    const auto& items = value.as_list();
    return levels == 0 || std::any_of(items.begin(), items.end(), [levels](const Value& item) {
             return is_deeper(item, levels - 1);
           });
  }
  if (!value.is_dict()) return false;
  const auto& items = value.as_dict();
  return levels == 0 || std::any_of(items.begin(), items.end(), [levels](const auto& item) {
           return is_deeper(item.second, levels - 1);
         });
}

}  // namespace kolo::search
