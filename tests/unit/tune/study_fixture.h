// Studies in a directory of their own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "base/files.h"
#include "kolo/tune.h"

namespace kolo::test {

class StudyTest : public testing::Test {
 protected:
  explicit StudyTest(std::string_view scratch = "kolo-study") : scratch_(scratch) {}

  /// Options of a study that keeps to itself.
  [[nodiscard]] tune::Options options(const std::string& name) const {
    tune::Options options;
    options.name = name;
    options.local_dir = scratch_.path().string();
    options.verbose = 0;
    options.total_resources = tune::Resources{.cpu = 4};
    return options;
  }
  [[nodiscard]] tune::Options minimize(const std::string& name, const std::string& metric) const {
    auto result = options(name);
    result.metric = metric;
    result.mode = "min";
    return result;
  }

  template <class Call>
  static Error refusal(Call&& call) {
    try {
      call();
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return {ErrorCode::internal, "nothing"};
  }

  TempDir scratch_;
};

}  // namespace kolo::test
