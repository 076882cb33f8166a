// Short ways to throw kolo::Error with a formatted message.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "kolo/error.h"

namespace kolo {

/// throw_error(ErrorCode::invalid_argument, "broadcast: root {} is not in 0…{}", root, size - 1)
template <class... Args>
[[noreturn]] void throw_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

/// As throw_error(io, …), with the text of `errno` at the end.
template <class... Args>
[[noreturn]] void throw_errno(fmt::format_string<Args...> format, Args&&... args) {
  int saved = errno;
  throw Error(ErrorCode::io,
              fmt::format(format, std::forward<Args>(args)...) + ": " + std::strerror(saved));
}

/// An internal invariant; failure is a defect of kolo, not of its caller.
#define KOLO_CHECK(condition)                                                           \
  do {                                                                                  \
    if (!(condition)) [[unlikely]]                                                      \
      ::kolo::throw_error(::kolo::ErrorCode::internal, "{}:{}: {}", __FILE__, __LINE__, \
                          #condition);                                                  \
  } while (false)

}  // namespace kolo
