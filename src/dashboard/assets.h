// The files of the page, which the program holds.
#pragma once

#include <span>
#include <string_view>

namespace kolo::dashboard {

struct Asset {
  std::string_view path;  ///< "/study.js"
  std::string_view type;
  std::string_view content;
};

std::span<const Asset> assets();

}  // namespace kolo::dashboard
