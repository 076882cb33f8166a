// A user moves a job on in the instant between the start of its task and the launcher's write of
// it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "integration/run/kolo_process.h"
#include "kolo/jobs.h"
#include "store/database.h"

namespace kolo::test {
namespace {

using jobs::JobDatabase;
using jobs::JobState;

TEST(JobsMoved, TheTaskEndsAndTheJobRunsAgain) {
  const TempDir scratch;
  JobDatabase jobs = JobDatabase::init(scratch.path() / "db", "");
  jobs.set_application({.name = "mark", .executable = "sh -c 'echo ran >>marks; exec sleep 0.2'"});
  const auto id = jobs.create({.name = "j", .workflow = "w", .application = "mark"});
  // The instant is a few milliseconds long; this hits it every time, once.
  const auto state = [](JobState value) { return static_cast<std::int64_t>(value); };
  auto database = store::open_database((scratch.path() / "db" / "kolo.db").string());
  database->execute("CREATE TABLE moves (at BIGINT)");
  database->execute("INSERT INTO moves VALUES (1)");
  database->execute(fmt::format(
      "CREATE TRIGGER moved BEFORE UPDATE ON jobs WHEN NEW.state = {} AND EXISTS (SELECT 1 FROM "
      "moves) BEGIN DELETE FROM moves; UPDATE jobs SET state = {} WHERE id = OLD.id; "
      "SELECT RAISE(IGNORE); END",
      state(JobState::running), state(JobState::restart_ready)));

  KoloProcess launcher({"launcher", "--nodes", "1", "--persistent", "--grace-seconds", "0.5"},
                       {.environment = {"KOLO_DB=" + jobs.folder().string()},
                        .directory = {},
                        .close_output = false});
  EXPECT_TRUE(eventually([&] { return is_end(jobs.job(id).state); }));
  EXPECT_EQ(jobs.job(id).state, JobState::job_finished);
  auto& left = database->prepare("SELECT COUNT(*) FROM moves");
  ASSERT_TRUE(left.next());
  EXPECT_EQ(left.integer(0), 0);
}

}  // namespace
}  // namespace kolo::test
