// Commands that are told to end. While they wait for somebody who does not answer, they end within
// seconds, and say what they waited for. Told a second time, they no longer wait for their
// programs.
#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>

#include <fstream>

#include "base/files.h"
#include "conformance/store/postgres_server.h"
#include "integration/run/kolo_process.h"
#include "kolo/jobs.h"

namespace kolo::test {
namespace {

using testing::HasSubstr;

class ToldToEnd : public testing::Test {
 protected:
  ToldToEnd() { ::setenv("KOLO_DB", folder().c_str(), 1); }
  [[nodiscard]] std::filesystem::path folder() const { return scratch_.path() / "db"; }
  std::filesystem::path script(const std::string& name, const std::string& text) {
    const auto path = scratch_.path() / name;
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  /// Instead of ssh: says that it was called, and never answers.
  std::vector<std::string> silent_ssh() {
    const auto called = scratch_.path() / "called";
    return {"KOLO_SSH=" + script("ssh", "touch " + called.string() + "; exec sleep 600").string()};
  }
  bool is_there(const std::string& name) {
    return eventually([&] { return std::filesystem::exists(scratch_.path() / name); });
  }

  TempDir scratch_;
};

class ToldToEndWithoutDatabase : public ToldToEnd {
 protected:
  void SetUp() override {
    server_ = PostgresServer::start_new();
    if (!server_) GTEST_SKIP() << "PostgreSQL is not installed here";
    auto jobs = jobs::JobDatabase::init(folder(), server_->url());
    jobs.set_application(
        {.name = "wait",
         .executable = script("wait", "cd " + scratch_.path().string() +
                                          " && touch begun; while [ ! -e go ]; do sleep 0.05; "
                                          "done; touch ended")
                           .string()});
    jobs::Job job;
    job.name = "job", job.workflow = "flow", job.application = "wait";
    jobs.create(job);
    launcher_ = std::make_unique<KoloProcess>(std::vector<std::string>{"launcher", "--persistent"});
    ASSERT_TRUE(is_there("begun")) << launcher_->err();
  }
  /// The job ends, which the launcher cannot write down.
  void end_job() {
    std::ofstream(scratch_.path() / "go") << "go";
    ASSERT_TRUE(is_there("ended"));
  }

  std::unique_ptr<PostgresServer> server_;
  std::unique_ptr<KoloProcess> launcher_;
};

TEST_F(ToldToEndWithoutDatabase, ALauncherWhoseServerIsGone) {
  server_->crash();
  end_job();
  ASSERT_TRUE(launcher_->wait_for_err("the job database fails")) << launcher_->err();
  launcher_->signal(SIGTERM);
  EXPECT_EQ(launcher_->wait(), 1);
  EXPECT_THAT(launcher_->err(), HasSubstr("told to end (signal 15), and the job database has not"));
  EXPECT_TRUE(launcher_->nothing_left());
  server_->start();
}

TEST_F(ToldToEndWithoutDatabase, ALauncherWhoseServerHangs) {
  server_->freeze();
  end_job();
  launcher_->signal(SIGINT);
  EXPECT_EQ(launcher_->wait(), 1);
  EXPECT_THAT(launcher_->err(), HasSubstr("the server does not answer"));
  EXPECT_TRUE(launcher_->nothing_left());
  server_->thaw();
}

TEST_F(ToldToEnd, ALauncherThatWaitsForItsNodes) {
  jobs::JobDatabase::init(folder());
  KoloProcess launcher({"launcher", "--hosts", "elsewhere:1"},
                       {.environment = silent_ssh(), .directory = {}});
  ASSERT_TRUE(is_there("called")) << launcher.err();
  launcher.signal(SIGTERM);
  EXPECT_EQ(launcher.wait(), 1);
  EXPECT_THAT(launcher.err(), HasSubstr("told to end while waiting for the nodes elsewhere"));
  EXPECT_TRUE(launcher.nothing_left());
}

TEST_F(ToldToEnd, AStudyThatWaitsForItsHosts) {
  const auto space = scratch_.path() / "space.yaml";
  std::ofstream(space) << "x: {uniform: [0, 1]}\n";
  auto environment = silent_ssh();
  environment.push_back("KOLO_STORAGE=" + (scratch_.path() / "kolo.db").string());
  environment.push_back("KOLO_RESULTS=" + scratch_.path().string());
  KoloProcess study({"tune", "--space", space, "--hosts", "elsewhere:1", "--", "true"},
                    {.environment = environment, .directory = {}});
  ASSERT_TRUE(is_there("called")) << study.err();
  study.signal(SIGINT);
  EXPECT_EQ(study.wait(), 1);
  EXPECT_THAT(study.err(), HasSubstr("told to end while waiting for an answer of elsewhere"));
  EXPECT_TRUE(study.nothing_left());
}

/// Programs that never end in peace.
class ToldToEndTwice : public ToldToEnd {
 protected:
  std::string stubborn() {
    return script("stubborn", "trap '' TERM; touch " + (scratch_.path() / "begun").string() +
                                  "; while :; do sleep 0.05; done")
        .string();
  }
  std::vector<std::string> results() {
    return {"KOLO_STORAGE=" + (scratch_.path() / "kolo.db").string(),
            "KOLO_RESULTS=" + scratch_.path().string()};
  }
  std::string space() {
    const auto path = scratch_.path() / "space.yaml";
    std::ofstream(path) << "x: {uniform: [0, 1]}\n";
    return path.string();
  }
  /// Told until it has ended, as impatient people do. Its status.
  int tell_until_the_end(KoloProcess& command, int signal) {
    EXPECT_TRUE(is_there("begun")) << command.err();
    int status = -1;
    for (int times = 0; status == -1 && times < 30; ++times) {
      command.signal(signal);
      status = command.wait(std::chrono::seconds(1));
    }
    return status;
  }
};

TEST_F(ToldToEndTwice, ALauncherKillsItsJobsAndGivesThemBack) {
  auto jobs = jobs::JobDatabase::init(folder());
  jobs.set_application({.name = "stubborn", .executable = stubborn()});
  jobs::Job job;
  job.name = "job", job.workflow = "flow", job.application = "stubborn";
  const auto id = jobs.create(job);
  KoloProcess launcher({"launcher", "--persistent", "--grace-seconds", "600"});
  EXPECT_EQ(tell_until_the_end(launcher, SIGTERM), 0) << launcher.err();
  EXPECT_TRUE(launcher.nothing_left());
  EXPECT_EQ(jobs.job(id).state, jobs::JobState::restart_ready);
}

// A status of 130 would say that the trials were waited for.
TEST_F(ToldToEndTwice, AStudyEndsAtOnce) {
  KoloProcess study({"tune", "--space", space(), "--num-samples", "2", "--", stubborn()},
                    {.environment = results(), .directory = {}});
  EXPECT_EQ(tell_until_the_end(study, SIGTERM), 128 + SIGTERM) << study.err();
  EXPECT_TRUE(study.nothing_left());
}

TEST_F(ToldToEndTwice, ASearchEndsAtOnce) {
  KoloProcess search({"hps", "random", "--problem", space(), "--max-evals", "2", "--log-dir",
                      (scratch_.path() / "log").string(), "--", stubborn()},
                     {.environment = results(), .directory = {}});
  EXPECT_EQ(tell_until_the_end(search, SIGTERM), 128 + SIGTERM) << search.err();
  EXPECT_TRUE(search.nothing_left());
}

}  // namespace
}  // namespace kolo::test
