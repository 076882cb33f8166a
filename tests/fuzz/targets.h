// Parsers of bytes from outside, each as a function that any bytes may be given to.
//
// A target takes what kolo::Error says for an answer: the input was refused. Every other exception,
// a crash, a finding of a sanitizer or a check that fails is a defect.
#pragma once

#include <span>
#include <string_view>

namespace kolo::fuzz {

struct Target {
  std::string_view name;
  void (*run)(std::string_view input);
  /// How often the usual time one input takes; the short pass has so many times fewer.
  unsigned cost = 1;
};

std::span<const Target> targets();
/// Null if there is none of that name.
const Target* find_target(std::string_view name);

}  // namespace kolo::fuzz
