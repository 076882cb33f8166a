#include "events/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace kolo::events {
namespace {

TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  // RFC 3720, B.4.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
}

TEST(Crc32c, DoesNotDependOnHowTheLengthDividesByEight) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    // Bit by bit, as the definition has it.
    std::uint32_t crc = ~0U;
    for (char c : text) {
      crc ^= static_cast<unsigned char>(c);
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
    }
    EXPECT_EQ(crc32c(text), ~crc) << text.size();
    text += static_cast<char>(37 * i);
  }
}

}  // namespace
}  // namespace kolo::events
