#include "jobs/pilot/staging.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>

#include "base/errors.h"
#include "base/files.h"

namespace kolo::jobs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class Staging : public testing::Test {
 protected:
  static void put(const fs::path& path) {
    make_folder(path.parent_path());
    std::ofstream(path) << path.string();
  }
  TempDir scratch_;
  fs::path root_ = scratch_.path();
};

TEST_F(Staging, LinksWhatMatchesAndKeepsNamesApart) {
  for (const char* name : {"p1/a.dat", "p1/b.txt", "p2/a.dat", "p2/c.dat"}) put(root_ / name);
  make_folder(root_ / "job");
  for (int again = 0; again < 2; ++again) {
    link_inputs(root_ / "job", root_ / "p1", JobId{1}, "*.dat");
    link_inputs(root_ / "job", root_ / "p2", JobId{2}, "x* *.dat");
  }
  EXPECT_EQ(read_file(root_ / "job/a.dat"), (root_ / "p1/a.dat").string());
  EXPECT_EQ(read_file(root_ / "job/a.dat_2"), (root_ / "p2/a.dat").string());
  EXPECT_TRUE(fs::exists(root_ / "job/c.dat"));
  EXPECT_FALSE(fs::exists(root_ / "job/b.txt"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "job"), fs::directory_iterator()), 3);
}

TEST_F(Staging, LinksWhatTheParentMadeAndNotWhatItWasGiven) {
  put(root_ / "first/a.dat");
  for (const char* job : {"second", "third", "fourth"}) make_folder(root_ / job);
  link_inputs(root_ / "second", root_ / "first", JobId{1}, "*");
  put(root_ / "second/b.dat");
  link_inputs(root_ / "third", root_ / "second", JobId{2}, "*");
  EXPECT_TRUE(fs::exists(root_ / "third/b.dat"));
  EXPECT_FALSE(fs::exists(root_ / "third/a.dat"));
  link_inputs(root_ / "fourth", root_ / "second", JobId{2}, "*.dat");
  EXPECT_TRUE(fs::exists(root_ / "fourth/a.dat")) << "it was asked for";
}

TEST_F(Staging, KnowsThePlacesToCopyFrom) {
  put(root_ / "in/x");
  const std::string to = (root_ / "job").string() + "/";
  EXPECT_THAT(stage_in_command((root_ / "in").string(), root_ / "job"),
              ElementsAre("cp", "-r", "--", (root_ / "in").string() + "/.", to));
  EXPECT_THAT(stage_in_command("file://" + (root_ / "in/x").string(), root_ / "job"),
              ElementsAre("cp", "-r", "--", (root_ / "in/x").string(), to));
  EXPECT_THAT(stage_in_command("ssh://me@host/a b", root_ / "job"),
              ElementsAre("scp", "-q", "-B", "-r", "--", "me@host:/a b", to));
  EXPECT_THAT(stage_in_command("host:dir", root_ / "job")[5], "host:dir");
  EXPECT_EQ(stage_in_command("gsiftp://x/y", root_ / "job")[0], "globus-url-copy");
  for (const char* bad : {"", "-x", "ssh://host", "ssh://-oProxyCommand=x/y", "what://x"})
    EXPECT_THROW(stage_in_command(bad, root_ / "job"), Error) << bad;
}

TEST_F(Staging, CopiesOutWhatMatches) {
  put(root_ / "job/a.txt");
  put(root_ / "job/b.dat");
  EXPECT_EQ(stage_out_command(root_ / "job", "*.none", "/x"), std::nullopt);
  const auto command = stage_out_command(root_ / "job", "*.txt", (root_ / "out").string());
  ASSERT_TRUE(command);
  EXPECT_EQ(command->back(), (root_ / "job/a.txt").string());
  EXPECT_EQ(stage_out_command(root_ / "job", "*", "host:/x")->back(), "host:/x");
}

TEST_F(Staging, LeavesToTheCommandWhatCannotBeLookedAt) {
  fs::create_symlink(root_ / "loop", root_ / "loop");
  for (const std::string& odd : {(root_ / "loop").string(), "/" + std::string(300, 'x')})
    EXPECT_EQ(stage_in_command(odd, root_ / "job")[3], odd);
}

TEST_F(Staging, RefusesMoreNamesThanACommandTakes) {
  for (int i = 0; i < 6000; ++i) put(root_ / "job" / fmt::format("{:0200}", i));
  try {
    stage_out_command(root_ / "job", "*", (root_ / "out").string());
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.message(), testing::HasSubstr("6000 files match"));
  }
}

}  // namespace
}  // namespace kolo::jobs
