#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

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
  EXPECT_THAT(message_of("carrier-pigeon"), HasSubstr("tcp, openmpi, mpich"));
}

TEST_F(WireLoader, AFileThatIsNoLibraryIsRefused) {
  std::ofstream(directory_ / "kolo_wire_mpich.so") << "not a library";
  const std::string why = message_of("mpich");
  EXPECT_THAT(why, HasSubstr((directory_ / "kolo_wire_mpich.so").string()));
  EXPECT_THAT(why, HasSubstr("libmpich12"));
}

TEST_F(WireLoader, CodeThatOthersMayWriteIsNotLoaded) {
  const auto file = directory_ / "kolo_wire_mpich.so";
  std::ofstream(file) << "not a library";
  ::chmod(file.c_str(), 0666);
  EXPECT_THAT(message_of("mpich"), HasSubstr("other users may write to " + file.string()));
  ::chmod(file.c_str(), 0644);
  ::chmod(directory_.c_str(), 0777);
  EXPECT_THAT(message_of("mpich"), HasSubstr("other users may write to " + directory_.string()));
  ::chmod(directory_.c_str(), 0700);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ::chown(file.c_str(), 4711, 4711);
  EXPECT_THAT(message_of("mpich"), HasSubstr("belongs to another user (id 4711)"));
}

TEST_F(WireLoader, AFailureIsNotRemembered) {
  const std::filesystem::path file = directory_ / "kolo_wire_openmpi.so";
  std::ofstream(file) << "not a library";
  message_of("openmpi");
  std::filesystem::remove(file);
  std::string why;
  const std::string name = "openmpi";
  if (!wire_plugin_available(name, &why)) GTEST_SKIP() << why;
  const WirePlugin& plugin = load_wire_plugin(name);
  EXPECT_EQ(plugin.abi, WirePlugin::kAbi);
  EXPECT_STREQ(plugin.name, "mpi");
  EXPECT_THAT(plugin.library, HasSubstr("Open MPI "));
  EXPECT_EQ(&plugin, &load_wire_plugin(name));
}

}  // namespace
}  // namespace kolo::comm
