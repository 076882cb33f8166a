#include "base/env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "kolo/error.h"

namespace kolo {
namespace {

class Env : public testing::Test {
 protected:
  void set(const char* variable, const char* value) { ::setenv(variable, value, 1); }
  void TearDown() override {
    ::unsetenv("KOLO_TEST_KNOB");
    ::unsetenv("HOROVOD_TEST_KNOB");
  }
};

TEST_F(Env, UnsetAndEmptyAreTheSame) {
  EXPECT_EQ(setting("TEST_KNOB"), std::nullopt);
  set("KOLO_TEST_KNOB", "");
  EXPECT_EQ(setting("TEST_KNOB"), std::nullopt);
}

TEST_F(Env, OurNameWinsOverHorovods) {
  set("HOROVOD_TEST_KNOB", "5");
  EXPECT_EQ(setting_integer("TEST_KNOB"), 5);
  set("KOLO_TEST_KNOB", "-7");
  EXPECT_EQ(setting_integer("TEST_KNOB"), -7);
}

TEST_F(Env, NumbersAndFlags) {
  set("KOLO_TEST_KNOB", "0.25");
  EXPECT_EQ(setting_number("TEST_KNOB"), 0.25);
  set("KOLO_TEST_KNOB", "on");
  EXPECT_EQ(setting_flag("TEST_KNOB"), true);
  set("KOLO_TEST_KNOB", "0");
  EXPECT_EQ(setting_flag("TEST_KNOB"), false);
}

TEST_F(Env, SecondsCanBeAddedToAClock) {
  using namespace std::chrono_literals;
  set("KOLO_TEST_KNOB", "0.25");
  EXPECT_EQ(setting_seconds("TEST_KNOB"), 250ms);
  for (const char* value : {"inf", "1e300", "1e12"}) {
    set("KOLO_TEST_KNOB", value);
    EXPECT_EQ(setting_seconds("TEST_KNOB"), 24h * 365) << value;
  }
  for (const char* value : {"-1", "nan"}) {
    set("KOLO_TEST_KNOB", value);
    EXPECT_THROW((void)setting_seconds("TEST_KNOB"), Error) << value;
  }
}

TEST_F(Env, NonsenseNamesVariableAndValue) {
  for (const char* value : {"12x", "99999999999999999999", "zwölf"}) {
    set("HOROVOD_TEST_KNOB", value);
    try {
      (void)setting_integer("TEST_KNOB");
      FAIL() << "no exception for " << value;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_EQ(error.message(),
                std::string("HOROVOD_TEST_KNOB='") + value + "' is not a whole number");
    }
  }
  set("HOROVOD_TEST_KNOB", "maybe");
  EXPECT_THROW((void)setting_flag("TEST_KNOB"), Error);
}

}  // namespace
}  // namespace kolo
