#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "comm/wire/messenger.h"
#include "kolo/error.h"

namespace kolo::comm {
namespace {

using testing::HasSubstr;

std::string message_of(const std::string& name) {
  std::string why;
  EXPECT_FALSE(wire_plugin_available(name, &why));
  return why;
}

class WireLoader : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "kolo_wire_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    ::setenv("KOLO_PLUGIN_DIR", directory_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("KOLO_PLUGIN_DIR");
    std::filesystem::remove_all(directory_);
  }

  std::filesystem::path directory_;
};

TEST_F(WireLoader, AnUnknownNameListsTheKnownOnes) {
  EXPECT_THAT(message_of("carrier-pigeon"), HasSubstr("gloo, openmpi, mpich"));
}

TEST_F(WireLoader, AFileThatIsNoLibraryIsRefused) {
  std::ofstream(directory_ / "kolo_wire_mpich.so") << "not a library";
  const std::string why = message_of("mpich");
  EXPECT_THAT(why, HasSubstr((directory_ / "kolo_wire_mpich.so").string()));
  EXPECT_THAT(why, HasSubstr("libmpich12"));
}

TEST_F(WireLoader, AFailureIsNotRemembered) {
  const std::filesystem::path file = directory_ / "kolo_wire_gloo.so";
  std::ofstream(file) << "not a library";
  message_of("gloo");
  std::filesystem::remove(file);
  std::string why;
  if (!wire_plugin_available("gloo", &why)) GTEST_SKIP() << why;
  const WirePlugin& plugin = load_wire_plugin("gloo");
  EXPECT_EQ(plugin.abi, WirePlugin::kAbi);
  EXPECT_STREQ(plugin.name, "gloo");
  EXPECT_THAT(plugin.library, HasSubstr("Gloo "));
  EXPECT_EQ(&plugin, &load_wire_plugin("gloo"));
}

}  // namespace
}  // namespace kolo::comm
