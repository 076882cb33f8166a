// What a call throws, to look at.
#pragma once

#include <gtest/gtest.h>

#include "kolo/error.h"

namespace kolo {

template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorCode::internal, "nothing was thrown"};
}

}  // namespace kolo
