#include "base/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kolo/error.h"

namespace kolo {
namespace {

using Make = int (*)();
constexpr Entry<Make> kShapes[] = {
    {"circle", "round", [] { return 0; }},
    {"square", "four equal sides", [] { return 4; }},
    {"triangle", "three sides", [] { return 3; }},
};
constexpr Registry<Make> kRegistry{"shape", kShapes};

std::string message_for(std::string_view name) {
  try {
    (void)kRegistry.at(name);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    return error.message();
  }
  return "no exception";
}

TEST(Registry, FindsByName) {
  EXPECT_EQ(kRegistry.at("square").make(), 4);
  EXPECT_EQ(kRegistry.at("triangle").summary, "three sides");
  EXPECT_EQ(kRegistry.find("Square"), nullptr);
  EXPECT_THAT(kRegistry.names(), testing::ElementsAre("circle", "square", "triangle"));
}

TEST(Registry, UnknownNameListsTheKnownOnesAndTheNearest) {
  EXPECT_EQ(message_for("sqaure"),
            "shape 'sqaure' is unknown; did you mean 'square'? known: circle, square, triangle");
}

TEST(Registry, NoHintWhenNothingIsNear) {
  EXPECT_EQ(message_for("pentagon"),
            "shape 'pentagon' is unknown; known: circle, square, triangle");
  EXPECT_EQ(message_for(""), "shape '' is unknown; known: circle, square, triangle");
}

TEST(Registry, NearestNameToleratesOneWrongLetterInShortNames) {
  std::vector<std::string_view> known = {"shm", "gloo", "mpi"};
  EXPECT_EQ(nearest_name("shn", known), "shm");
  EXPECT_EQ(nearest_name("hsm", known), "shm");
  EXPECT_EQ(nearest_name("glo", known), "gloo");
  EXPECT_EQ(nearest_name("tcp", known), "");
  // Of two equally near names the one that was typed without its end.
  EXPECT_EQ(nearest_name("tun", {"run", "tune"}), "tune");
  EXPECT_EQ(nearest_name("shm", {}), "");
}

}  // namespace
}  // namespace kolo
