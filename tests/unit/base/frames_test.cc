#include "base/frames.h"

#include <gtest/gtest.h>

#include "kolo/error.h"

namespace kolo {
namespace {

TEST(FramesTest, ComeOutAsTheyWentInHoweverTheyArrive) {
  const std::string stream =
      encode_frame(1, "one") + encode_frame(2, "") + encode_frame(255, std::string(300, 'x'));
  for (std::size_t step : {std::size_t{1}, std::size_t{3}, stream.size()}) {
    FrameParser parser(1000);
    std::vector<Frame> frames;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      parser.feed(std::string_view(stream).substr(at, step));
      while (auto frame = parser.next()) frames.push_back(std::move(*frame));
    }
    ASSERT_EQ(frames.size(), 3U);
    EXPECT_EQ(frames[0].type, 1);
    EXPECT_EQ(frames[0].payload, "one");
    EXPECT_EQ(frames[1].payload, "");
    EXPECT_EQ(frames[2].type, 255);
    EXPECT_EQ(frames[2].payload, std::string(300, 'x'));
    EXPECT_EQ(parser.pending(), 0U);
  }
}

TEST(FramesTest, TooLongAndEmptyFramesAreRefusedAtTheirLength) {
  FrameParser parser(10);
  parser.feed(encode_frame(1, std::string(9, 'x')));
  EXPECT_TRUE(parser.next().has_value());
  parser.feed(std::string("\x0b\0\0\0", 4));  // 11 bytes are announced, none has come
  EXPECT_THROW(parser.next(), Error);
  FrameParser other(10);
  other.feed(std::string(4, '\0'));
  EXPECT_THROW(other.next(), Error);
}

TEST(FramesTest, NumbersAndStringsKeepTheirValue) {
  const std::string bytes = ByteWriter()
                                .u8(200)
                                .u16(0xabcd)
                                .u32(0x89abcdef)
                                .u64(0x0123456789abcdefULL)
                                .i32(-5)
                                .string("text")
                                .raw("tail")
                                .bytes();
  EXPECT_EQ(bytes.substr(1, 2), "\xcd\xab");
  ByteReader reader(bytes);
  EXPECT_EQ(reader.u8(), 200);
  EXPECT_EQ(reader.u16(), 0xabcd);
  EXPECT_EQ(reader.u32(), 0x89abcdefU);
  EXPECT_EQ(reader.u64(), 0x0123456789abcdefULL);
  EXPECT_EQ(reader.i32(), -5);
  EXPECT_EQ(reader.string(), "text");
  EXPECT_THROW(reader.finish(), Error);
  EXPECT_EQ(reader.raw(4), "tail");
  EXPECT_NO_THROW(reader.finish());
  EXPECT_THROW(reader.u8(), Error);
}

TEST(FramesTest, WhatEndsTooEarlyIsCorruption) {
  const std::string bytes = ByteWriter().string("four").bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ByteReader reader(std::string_view(bytes).substr(0, size));
    EXPECT_THROW(reader.string(), Error) << size;
  }
  // A count that promises more than could follow is not believed.
  const std::string many = ByteWriter().u32(1'000'000'000).raw("abcd").bytes();
  EXPECT_THROW(ByteReader(many).count(4), Error);
  const std::string two = ByteWriter().u32(2).raw("abcdefgh").bytes();
  EXPECT_EQ(ByteReader(two).count(4), 2U);
}

}  // namespace
}  // namespace kolo
