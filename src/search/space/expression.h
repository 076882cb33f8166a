// The small language of {"eval": "…"}: arithmetic over values of the configuration, and nothing
// else. No loops, no assignments, no access to anything outside.
//
//   expression := choice
//   choice     := or [ "if" or "else" choice ]            (as Python writes it)
//   or, and, not, comparisons (< <= > >= == !=), + - * / // % **, unary -
//   operand    := number | "text" | 'text' | true | false | name | function(…) | ( expression )
//   name       := key(.key)*, a path into the configuration; "config." or "spec.config." in front
//                 is allowed, as Tune writes it; list indices are keys
//   function   := abs ceil exp float floor int log log2 log10 max min random round sqrt
//
// Whole numbers stay whole, except under "/". A text is evaluated in time linear in its length.
#pragma once

#include <string>

#include "kolo/search/domain.h"

namespace kolo::search {

/// Throws invalid_argument naming the place of the mistake. The function throws invalid_argument
/// where the operands do not suit (text times text, division by zero).
SampleFunction compile_expression(const std::string& text);

}  // namespace kolo::search
