// Read first when clang-tidy checks a file with libtorch: libtorch's headers hold vectors of a type
// that is not complete yet, which Clang refuses where the members of std::vector are constexpr, as
// GCC 12's library has them in C++20.
#pragma once

#include <iterator>
#include <memory>
#include <string>

#pragma push_macro("_GLIBCXX20_CONSTEXPR")
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
// Declared as constexpr before, and defined in <vector>.
#define __fill_a1 __fill_a1_of_bits
#include <vector>
#undef __fill_a1
#pragma pop_macro("_GLIBCXX20_CONSTEXPR")
