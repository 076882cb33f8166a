// Databases that are gone, full or slow: the study waits, says so, and goes on.
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "conformance/store/postgres_server.h"
#include "unit/tune/study_fixture.h"

namespace kolo::test {
namespace {

using namespace tune;
using namespace std::chrono_literals;

class TuneStorage : public StudyTest {};

TEST_F(TuneStorage, AFullDiskIsWaitedFor) {
  const auto disk = scratch_.path() / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=2m") != 0)
    GTEST_SKIP() << "no small disk can be mounted here";
  auto how = minimize("full", "loss");
  how.storage = (disk / "kolo.db").string();
  how.num_samples = 40;
  how.loggers = {};
  how.config = {{"x", uniform(0, 1)}};
  const auto filler = disk / "filler";
  std::atomic<bool> freed{false};
  std::thread helper;
  std::atomic<int> started{0};
  const auto analysis = tune::run(
      [&](const Config& config, Session& session) {
        if (++started == 5) {
          std::ofstream(filler) << std::string(8 << 20, 'x');  // as much as fits
          helper = std::thread([&] {
            std::this_thread::sleep_for(700ms);
            freed = true;
            std::filesystem::remove(filler);
          });
        }
        // Large enough that the disk is needed.
        session.report(
            {{"loss", config.at_path("x").as_number()}, {"pad", std::string(9000, 'p')}});
      },
      how);
  helper.join();
  EXPECT_TRUE(freed);
  EXPECT_EQ(analysis.trials().size(), 40U);
  EXPECT_EQ(analysis.stats().at_path("reports").as_integer(), 40);
  ::umount(disk.c_str());
}

TEST_F(TuneStorage, ADatabaseThatStaysAwayEndsTheStudyCleanly) {
  auto server = PostgresServer::start_new();
  if (!server) GTEST_SKIP() << "PostgreSQL is not installed here";
  auto how = minimize("gone", "loss");
  how.storage = server->url();
  how.num_samples = -1;
  how.storage_patience = 300ms;
  how.grace = 200ms;
  std::atomic<int> started{0};
  const Error error = refusal([&] {
    tune::run(
        [&](const Config&, Session& session) {
          if (++started == 3) server->stop();
          session.report({{"loss", 1}});
        },
        how);
  });
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  server->start();  // for its own end
}

TEST_F(TuneStorage, APostgresqlServerThatIsRestartedIsWaitedFor) {
  auto server = PostgresServer::start_new();
  if (!server) GTEST_SKIP() << "PostgreSQL is not installed here";
  auto how = minimize("restarted", "loss");
  how.storage = server->url();
  how.num_samples = 30;
  how.config = {{"x", uniform(0, 1)}};
  how.scheduler = ASHAScheduler({{"max_t", 3}});
  std::atomic<int> started{0};
  std::thread helper;
  const auto analysis = tune::run(
      [&](const Config& config, Session& session) {
        if (++started == 10)
          helper = std::thread([&] {
            server->stop();
            std::this_thread::sleep_for(300ms);
            server->start();
          });
        for (int i = 1; i <= 3; ++i)
          session.report({{"loss", config.at_path("x").as_number() / i}});
      },
      how);
  helper.join();
  ASSERT_EQ(analysis.trials().size(), 30U);
  for (const auto& trial : analysis.trials()) EXPECT_EQ(trial.status, TrialStatus::terminated);
  // And a resume finds it all.
  how.resume = Resume::yes;
  how.num_samples = 32;
  EXPECT_EQ(tune::run(
                [](const Config&, Session& session) {
                  session.report({{"loss", 1}});
                },
                how)
                .trials()
                .size(),
            32U);
}

}  // namespace
}  // namespace kolo::test
