// Alternative names of the entries of a table.
#pragma once

#include <span>
#include <string_view>

namespace kolo::nas {

struct Alias {
  std::string_view alias, name;
};

/// What the alias stands for; `name` itself where it is none.
constexpr std::string_view without_alias(std::string_view name, std::span<const Alias> aliases) {
  for (const Alias& each : aliases)
    if (each.alias == name) return each.name;
  return name;
}

}  // namespace kolo::nas
