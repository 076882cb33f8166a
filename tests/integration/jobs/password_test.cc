// A database of jobs on a server that asks for a password (SCRAM), through the commands: the
// password is on no command line, and in no file or message that others can read.
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>

#include "base/errors.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "conformance/store/postgres_server.h"
#include "integration/run/kolo_process.h"
#include "kolo/jobs.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPassword = "hush7391";

class JobsPassword : public testing::Test {
 protected:
  void SetUp() override {
    server_ = PostgresServer::start_new();
    if (!server_) GTEST_SKIP() << "PostgreSQL is not installed here";
    server_->add_user("clerk", kPassword);
    ::setenv("KOLO_DB", folder().c_str(), 1);
    ::setenv("PGPASSFILE", (scratch_.path() / "pgpass").c_str(), 1);
  }
  [[nodiscard]] std::filesystem::path folder() const { return scratch_.path() / "db"; }

  /// `kolo init` with a URL on standard input.
  CommandResult init(const std::string& url) {
    const auto file = scratch_.path() / "url";
    write_file_atomically(file, url + "\n", kPrivateFile);
    return run_command(
        {"sh", "-c",
         fmt::format("exec {} init {} --db - <{}", KOLO_PROGRAM, folder().string(), file.string())},
        Deadline::after(30s));
  }

  /// Runs a job that looks at all command lines of the machine.
  void expect_work() {
    ASSERT_EQ(
        run_kolo({"app", "--name", "look", "--exec", "sh -c 'cat /proc/[0-9]*/cmdline; true'"})
            .status,
        0);
    ASSERT_EQ(run_kolo({"job", "--name", "look", "--app", "look"}).status, 0);
    const auto launcher = run_kolo({"launcher", "--idle-seconds", "0.2"});
    EXPECT_EQ(launcher.status, 0) << launcher.err;
    EXPECT_THAT(launcher.out + launcher.err, Not(HasSubstr(kPassword)));
    auto jobs = jobs::JobDatabase::open(folder());
    const auto job = jobs.job(jobs::JobId{1});
    EXPECT_EQ(job.state, jobs::JobState::job_finished);
    const std::string seen = read_file(jobs.folder_of(job) / "look.out");
    EXPECT_THAT(seen, HasSubstr("launcher"));
    EXPECT_THAT(seen, Not(HasSubstr(kPassword)));
  }

  TempDir scratch_;
  std::unique_ptr<PostgresServer> server_;
};

TEST_F(JobsPassword, IsReadFromStandardInputAndKeptInAPrivateFile) {
  const auto made = init(server_->url_of(fmt::format("clerk:{}", kPassword)));
  ASSERT_TRUE(made.ok()) << made.errors;
  EXPECT_THAT(made.output + made.errors, Not(HasSubstr(kPassword)));
  struct stat info {};
  ASSERT_EQ(::stat((folder() / "kolo-jobs.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  expect_work();
}

TEST_F(JobsPassword, IsTakenFromTheUsersFile) {
  write_file_atomically(scratch_.path() / "pgpass", fmt::format("*:*:*:clerk:{}\n", kPassword),
                        kPrivateFile);
  const auto made = init(server_->url_of("clerk"));
  ASSERT_TRUE(made.ok()) << made.errors;
  EXPECT_THAT(read_file(folder() / "kolo-jobs.json"), Not(HasSubstr(kPassword)));
  expect_work();
}

TEST_F(JobsPassword, IsNotShownWhenItIsWrong) {
  const auto refused = init(server_->url_of("clerk:guess7391"));
  EXPECT_EQ(exit_code_of(refused.status), 1);
  EXPECT_THAT(refused.errors, HasSubstr("password authentication failed"));
  EXPECT_THAT(refused.errors, Not(HasSubstr("guess7391")));
  EXPECT_EQ(exit_code_of(init("").status), 2);
}

TEST_F(JobsPassword, IsNotShownWhenTheUrlCannotBeRead) {
  const std::string place =
      server_->url_of("clerk").substr(std::string("postgresql://clerk").size());
  for (const std::string& url :
       {"postgresql://clerk:gue%zss7391" + place, "postgresql://clerk:gu@ess7391" + place,
        "postgresql://clerk:gue/ss7391" + place, "postgresql://clerk:gue?ss7391" + place,
        "postgresql://clerk" + place + "?%70assword=guess7391",
        std::string("host=127.0.0.1 password=guess7391")}) {
    const auto refused = init(url);
    EXPECT_FALSE(refused.ok()) << url;
    EXPECT_THAT(refused.output + refused.errors, Not(HasSubstr("ss7391"))) << url;
    EXPECT_FALSE(std::filesystem::exists(scratch_.path() / url));
  }
}

}  // namespace
}  // namespace kolo::test
