// Databases that are gone, full or slow: the study waits, says so, and goes on.
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/deadline.h"
#include "conformance/store/postgres_server.h"
#include "store/database.h"
#include "tune/study/study.h"
#include "tune/study/study_claim.h"
#include "tune/study/study_reader.h"
#include "unit/tune/study_fixture.h"

namespace kolo::test {
namespace {

using namespace tune;
using namespace std::chrono_literals;

class TuneStorage : public StudyTest {};

/// Hears what the study says to its user, while it happens.
struct Listener final : Observer {
  void on_step(const std::function<StudyView(std::size_t)>& /*view*/) override {}
  void on_end(const std::function<StudyView(std::size_t)>& /*view*/) override {}
  void on_message(const std::string& text) override {
    messages.push_back(text);
    if (heard) heard(text);
  }
  std::vector<std::string> messages{};
  std::function<void(const std::string&)> heard{};
};

TEST_F(TuneStorage, AFullDiskIsWaitedFor) {
  const auto disk = scratch_.path() / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=2m") != 0)
    GTEST_SKIP() << "no small disk can be mounted here";
  const auto filler = disk / "filler";
  std::atomic<int> started{0};
  const Runnable trainable([&](const Config& config, Session& session) {
    if (++started == 5) std::ofstream(filler) << std::string(8 << 20, 'x');  // as much as fits
    // Large enough that the disk is needed.
    session.report({{"loss", config.at_path("x").as_number()}, {"pad", std::string(9000, 'p')}});
  });
  const auto listener = std::make_shared<Listener>();
  // The disk has room again only after the study has said that it waits.
  listener->heard = [&](const std::string& text) {
    if (text.find("is tried again") != std::string::npos) std::filesystem::remove(filler);
  };
  StudySetup setup;
  setup.options = minimize("full", "loss");
  setup.options.storage = (disk / "kolo.db").string();
  setup.options.num_samples = 40;
  setup.options.loggers = {};
  setup.options.config = {{"x", uniform(0, 1)}};
  setup.makes_directories = false;
  setup.observers = {listener};
  setup.make_executor = [&](const ExecutorPlace& place) {
    return make_thread_executor(place.inbox, trainable, {});
  };
  {
    Study study(std::move(setup));
    study.run();
    const auto analysis = study.analysis();
    EXPECT_EQ(analysis.trials().size(), 40U);
    EXPECT_EQ(analysis.stats().at_path("reports").as_integer(), 40);
  }
  ASSERT_GE(listener->messages.size(), 2U);
  EXPECT_THAT(listener->messages[0], testing::HasSubstr("is tried again"));
  EXPECT_THAT(listener->messages[0], testing::HasSubstr("full"));
  EXPECT_THAT(listener->messages[1], testing::HasSubstr("works again"));
  ::umount(disk.c_str());
}

// A clock was set forward by an hour: the dates say that the controller has been silent for long.
TEST_F(TuneStorage, AControllerElsewhereThatStillWritesIsNotRobbed) {
  const auto connect = [this] {
    return store::open_database((scratch_.path() / "k.db").string(), {.create = true});
  };
  const auto database = connect(), theirs = connect();
  store::StudyStore store(*database);
  store::StudyRecord record;
  record.name = "s", record.spec = "{}";
  const auto study = store.create(record);
  database->execute(
      "UPDATE studies SET owner = 'x', owner_host = 'elsewhere boot', owner_pid = 1, "
      "owner_started = 1, heard = 100");
  std::atomic<bool> is_over{false};
  std::thread controller([&] {
    for (; !is_over; std::this_thread::sleep_for(10ms))
      theirs->execute("UPDATE studies SET heard = heard + 1");
  });
  EXPECT_EQ(refusal([&] { StudyClaim(store, study, 30s); }).code(), ErrorCode::failed_precondition);
  is_over = true;
  controller.join();
  const StudyClaim claim(store, study, 20ms);  // nobody writes any more
  EXPECT_FALSE(store.holder_elsewhere(study));
}

TEST_F(TuneStorage, ADatabaseThatStaysAwayEndsTheStudyCleanly) {
  auto server = PostgresServer::start_new();
  if (!server) GTEST_SKIP() << "PostgreSQL is not installed here";
  auto how = minimize("gone", "loss");
  how.storage = server->url();
  how.num_samples = -1;
  how.storage_patience = 300ms;
  how.grace = 200ms;
  std::atomic<int> started{0}, inside{0};
  const Error error = refusal([&] {
    tune::run(
        [&](const Config&, Session& session) {
          struct Inside {
            explicit Inside(std::atomic<int>& in) : count(in) { ++count; }
            ~Inside() { --count; }
            std::atomic<int>& count;
          } here(inside);
          if (++started == 3) server->stop();
          session.report({{"loss", 1}});
        },
        how);
  });
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  // No trial is left behind: whoever waited for an answer was told to stop.
  const Deadline deadline = Deadline::after(10s);
  while (inside > 0 && !deadline.passed()) std::this_thread::yield();
  EXPECT_EQ(inside, 0);
  // What was stored until then is whole: a trial that ended has the report it ended with.
  server->start();
  auto database = store::open_database(how.storage);
  store::StudyStore store(*database);
  const auto analysis = read_study(store, "gone");
  EXPECT_LE(analysis.trials().size(), static_cast<std::size_t>(started));
  EXPECT_GE(analysis.trials().size(), 2U);
  for (const auto& trial : analysis.trials()) {
    if (trial.status == TrialStatus::terminated) {
      EXPECT_EQ(trial.results.size(), 1U);
    }
  }
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
