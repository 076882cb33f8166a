#include "base/secure_stream.h"

#include <gmock/gmock.h>

#include "kolo/error.h"

namespace kolo {
namespace {

using Side = SecureStream::Side;

struct Pair {
  explicit Pair(const Secret& theirs)
      : caller(Side::caller, ours), answerer(Side::answerer, theirs) {}
  Pair() : caller(Side::caller, ours), answerer(Side::answerer, ours) {}

  void shake_hands() {
    EXPECT_EQ(answerer.receive(caller.take_outgoing()), "");
    EXPECT_EQ(caller.receive(answerer.take_outgoing()), "");
    EXPECT_EQ(answerer.receive(caller.take_outgoing()), "");
  }

  Secret ours = Secret::random();
  SecureStream caller, answerer;
};

TEST(SecureStreamTest, CarriesBytesBothWays) {
  Pair pair;
  pair.caller.send("said before the keys were known; ");
  pair.caller.send("and more");
  const std::string large(300'000, 'x');
  EXPECT_EQ(pair.answerer.receive(pair.caller.take_outgoing()), "");
  pair.answerer.send("answer");
  EXPECT_EQ(pair.caller.receive(pair.answerer.take_outgoing()), "answer");
  EXPECT_EQ(pair.answerer.receive(pair.caller.take_outgoing()),
            "said before the keys were known; and more");
  pair.answerer.send(large);
  const std::string sealed = pair.answerer.take_outgoing();
  EXPECT_EQ(sealed.find("xxxx"), std::string::npos);
  EXPECT_EQ(pair.caller.receive(sealed), large);
}

TEST(SecureStreamTest, TakesBytesOneByOne) {
  Pair pair;
  pair.caller.send("hello");
  std::string said;
  for (int round = 0; round < 2; ++round) {
    for (const char byte : pair.caller.take_outgoing()) said += pair.answerer.receive({&byte, 1});
    for (const char byte : pair.answerer.take_outgoing())
      EXPECT_EQ(pair.caller.receive({&byte, 1}), "");
  }
  EXPECT_EQ(said, "hello");
}

TEST(SecureStreamTest, AWrongSecretIsNotAnswered) {
  Pair pair(Secret::random());
  const std::string opening = pair.caller.take_outgoing();
  EXPECT_THROW(std::ignore = pair.answerer.receive(opening), Error);
  EXPECT_EQ(pair.answerer.take_outgoing(), "");
}

TEST(SecureStreamTest, GarbageIsNotAnswered) {
  Pair pair;
  EXPECT_THROW(std::ignore = pair.answerer.receive("GET / HTTP/1.1\r\n"), Error);
  EXPECT_EQ(pair.answerer.take_outgoing(), "");
}

TEST(SecureStreamTest, AnAnswererWithoutTheSecretIsNotBelieved) {
  Pair pair;
  EXPECT_THROW(std::ignore = pair.caller.receive(std::string(64, 'k')), Error);
}

TEST(SecureStreamTest, ARecordedConnectionCannotBeRepeated) {
  Pair pair;
  const std::string opening = pair.caller.take_outgoing();
  std::ignore = pair.answerer.receive(opening);
  std::ignore = pair.caller.receive(pair.answerer.take_outgoing());
  pair.caller.send("start something");
  const std::string order = pair.caller.take_outgoing();
  EXPECT_EQ(pair.answerer.receive(order), "start something");

  SecureStream again(Side::answerer, pair.ours);
  std::ignore = again.receive(opening);
  EXPECT_THROW(std::ignore = again.receive(order), Error);
}

TEST(SecureStreamTest, ChangedRepeatedAndExchangedChunksAreRefused) {
  for (const char* attack : {"change", "repeat", "exchange", "cut"}) {
    SCOPED_TRACE(attack);
    Pair pair;
    pair.shake_hands();
    pair.caller.send("first");
    std::string first = pair.caller.take_outgoing();
    pair.caller.send("second");
    std::string second = pair.caller.take_outgoing();
    std::string sent;
    if (std::string_view(attack) == "change") {
      first.back() = static_cast<char>(first.back() ^ 1);
      sent = first + second;
    } else if (std::string_view(attack) == "repeat") {
      sent = first + first;
    } else if (std::string_view(attack) == "exchange") {
      sent = second + first;
    } else {
      sent = second;
    }
    EXPECT_THROW(std::ignore = pair.answerer.receive(sent), Error);
  }
}

TEST(SecureStreamTest, NoChunkIsTooLong) {
  Pair pair;
  pair.shake_hands();
  EXPECT_THROW(std::ignore = pair.answerer.receive(std::string(4, '\xff')), Error);
}

}  // namespace
}  // namespace kolo
