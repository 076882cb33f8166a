// How much work the long tests do.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace kolo::test {

#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = kThreadSanitized;
#endif

/// `count` times KOLO_TEST_SCALE (default 1, or 0.1 under a sanitizer), at least 1.
inline int scaled(int count) {
  const char* text = std::getenv("KOLO_TEST_SCALE");
  const double scale = text != nullptr ? std::atof(text) : (kSanitized ? 0.1 : 1.0);
  return std::max(1, static_cast<int>(count * scale));
}

}  // namespace kolo::test
