#include "tune/output/trial_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"

namespace kolo::tune {
namespace {

using search::Value;

TEST(TrialLog, WritesTunesFiles) {
  TempDir scratch;
  const auto directory = scratch.path() / "trial";
  {
    TrialLog log({directory, Value{{"lr", 0.1}, {"name", "x"}}, {"loss"}},
                 {"json", "csv", "tensorboard"}, false);
    log.result(Value{{"loss", 2.5}, {"training_iteration", 1}, {"config", {{"lr", 0.1}}}});
    log.result(Value{{"loss", 1.5}, {"training_iteration", 2}, {"config", {{"lr", 0.1}}}});
    log.end(true);
  }
  EXPECT_EQ(parse_json(read_file(directory / "params.json"), "")["lr"], 0.1);
  EXPECT_EQ(read_file(directory / "progress.csv"), "loss,training_iteration\n2.5,1\n1.5,2\n");
  EXPECT_EQ(read_file(directory / "result.json"),
            "{\"config\": {\"lr\": 0.1}, \"loss\": 2.5, \"training_iteration\": 1}\n"
            "{\"config\": {\"lr\": 0.1}, \"loss\": 1.5, \"training_iteration\": 2}\n");
  int events = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    events += entry.path().filename().string().starts_with("events.out.tfevents.") ? 1 : 0;
  EXPECT_EQ(events, 1);
}

TEST(TrialLog, MetricsThatAppearLaterGetAColumn) {
  TempDir scratch;
  TrialLog log({scratch.path(), Value(Value::Dict{}), {}}, {"csv"}, false);
  log.result(Value{{"b", "two\nlines"}, {"c", 1}});
  log.flush();
  log.result(Value{{"a", 7}, {"b", "x"}, {"c", 2}});
  log.release();
  log.result(Value{{"c", 3}, {"d", 4}});
  log.flush();
  EXPECT_EQ(read_file(scratch.path() / "progress.csv"),
            "b,c,a,d\n\"two\nlines\",1,,\nx,2,7,\n,3,,4\n");
}

/// As on a disk that is full: files take so many bytes while this lives.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~SmallFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  sighandler_t handler_;
  rlimit before_{};
};

TEST(TrialLog, RepeatsNothingWhenADiskWasFull) {
  TempDir scratch;
  TrialLog log({scratch.path(), Value(Value::Dict{}), {}}, {"json"}, false);
  log.result(Value{{"loss", 1}});
  log.result(Value{{"loss", 2}});
  {
    const SmallFiles small(15);
    EXPECT_THROW(log.flush(), Error);
  }
  log.flush();
  EXPECT_EQ(read_file(scratch.path() / "result.json"), "{\"loss\": 1}\n{\"loss\": 2}\n");
}

TEST(TrialLog, HasTheColumnsOfItsTableWhenADiskWasFull) {
  TempDir scratch;
  TrialLog log({scratch.path(), Value(Value::Dict{}), {}}, {"csv"}, false);
  log.result(Value{{"a", 1}});
  log.flush();
  {
    const SmallFiles small(5);
    EXPECT_THROW(log.result(Value{{"a", 2}, {"b", 2}}), Error);
  }
  log.result(Value{{"a", 3}});
  log.flush();
  EXPECT_EQ(read_file(scratch.path() / "progress.csv"), "a\n1\n3\n");
  log.result(Value{{"a", 4}, {"b", 4}});
  log.flush();
  EXPECT_EQ(read_file(scratch.path() / "progress.csv"), "a,b\n1,\n3,\n4,4\n");
}

TEST(TrialLog, StartsAnewWhereItMayMissSomething) {
  TempDir scratch;
  for (int round = 0; round < 2; ++round) {
    TrialLog log({scratch.path(), Value(Value::Dict{}), {}}, {"json"}, true);
    log.result(Value{{"a", round}});
    log.end(true);
  }
  EXPECT_EQ(read_file(scratch.path() / "result.json"), "{\"a\": 1}\n");
}

TEST(TrialLog, HasAsManyColumnsAsATableMayHave) {
  TempDir scratch;
  TrialLog log({scratch.path(), Value(Value::Dict{}), {}}, {"csv", "json"}, false);
  for (int step = 0; step < 400; ++step)
    log.result(Value{{"loss", 1}, {fmt::format("loss_{}", step), step}});
  log.end(true);
  const std::string table = read_file(scratch.path() / "progress.csv");
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 401);
  const std::string header = table.substr(0, table.find('\n'));
  EXPECT_EQ(std::count(header.begin(), header.end(), ','), 299);
  EXPECT_THAT(read_file(scratch.path() / "result.json"), testing::HasSubstr("\"loss_399\": 399"));
}

TEST(TrialLog, WritesToFilesOfItsOwnAlone) {
  TempDir scratch;
  const auto directory = scratch.path() / "trial", precious = scratch.path() / "precious";
  std::filesystem::create_directory(directory);
  write_file_atomically(precious, "mine");
  const Value config{{"lr", 0.1}};
  for (const char* name : {"params.json", ".params.json"})
    std::filesystem::create_symlink(precious, directory / name);
  write_params(directory, config);
  EXPECT_TRUE(std::filesystem::is_regular_file(directory / "params.json"));
  TrialLog log({directory, config, {}}, {"json", "csv"}, false);
  log.result(Value{{"a", 1}});
  for (const char* name : {"result.json", "progress.csv", "error.txt"})
    std::filesystem::create_symlink(precious, directory / name);
  EXPECT_THROW(log.flush(), Error);
  EXPECT_THROW(log.failure(1, "oh", 0), Error);
  EXPECT_EQ(read_file(precious), "mine");
}

TEST(TrialLog, DoesNotReadWhatOthersHaveMadeOfItsTable) {
  TempDir scratch;
  TrialLog log({scratch.path(), Value(Value::Dict{}), {}}, {"csv"}, false);
  log.result(Value{{"a", 1}});
  log.flush();
  std::filesystem::resize_file(scratch.path() / "progress.csv", std::uintmax_t{1} << 40);
  EXPECT_THROW(log.result(Value{{"a", 2}, {"b", 3}}), Error);
}

}  // namespace
}  // namespace kolo::tune
