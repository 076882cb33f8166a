#include "hps/results/results_csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "base/files.h"
#include "kolo/error.h"

namespace kolo::hps {
namespace {

ResultRow row(const std::string& id, double objective) {
  ResultRow row;
  row.job_id = id;
  row.parameters = Value{{"lr", 0.1}, {"opt", "a,\"b\""}, {"arch_seq", Value::List{1, 0, 2}}};
  row.objectives = {objective};
  row.submitted = 0.5;
  row.gathered = 1.25;
  row.metadata = {{"epochs", 3}, {"note", "x\ny"}};
  return row;
}

ResultsWriter writer_in(const TempDir& folder) {
  return {folder.path() / "results.csv", {"arch_seq", "lr", "opt"}, 1, {"epochs"}};
}

void append_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

TEST(ResultsCsv, ComesBackAsItWasWritten) {
  const TempDir folder;
  auto writer = writer_in(folder);
  writer.append(row("0", 0.25));
  ResultRow failed = row("1", 0);
  failed.objectives.clear();
  failed.failure = "F_timeout";
  failed.error = "F_timeout: it took 3 s";
  writer.append(failed);
  const auto table = read_results(folder.path());
  EXPECT_EQ(table.parameters, (std::vector<std::string>{"arch_seq", "lr", "opt"}));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].parameters, row("0", 0).parameters);
  EXPECT_EQ(table.rows[0].objectives, std::vector<double>{0.25});
  EXPECT_EQ(table.rows[0].gathered, 1.25);
  EXPECT_EQ(table.rows[0].metadata.at("epochs"), Value(3));
  EXPECT_EQ(table.rows[0].metadata.at("note"), Value("x\ny"));
  EXPECT_TRUE(table.rows[1].failed());
  EXPECT_EQ(table.rows[1].failure, "F_timeout");
  EXPECT_EQ(table.rows[1].error, "F_timeout: it took 3 s");
  EXPECT_EQ(table.rows[1].metadata, row("1", 0).metadata);
  EXPECT_FALSE(table.torn);
}

TEST(ResultsCsv, CutsOffATornLineAndGoesOn) {
  const TempDir folder;
  writer_in(folder).append(row("0", 1));
  const auto before = read_file(folder.path() / "results.csv");
  append_text(folder.path() / "results.csv", "\"[1, 0, 2]\",0.1,a,0.7");
  EXPECT_TRUE(read_results(folder.path()).torn);
  EXPECT_EQ(read_results(folder.path()).rows.size(), 1U);
  auto again = writer_in(folder);
  EXPECT_EQ(again.known(), std::set<std::string>{"0"});
  EXPECT_EQ(read_file(folder.path() / "results.csv"), before);  // appended to, never written anew
  again.append(row("1", 2));
  EXPECT_EQ(read_results(folder.path()).rows.size(), 2U);
}

TEST(ResultsCsv, KeepsWhatFollowsAQuoteThatIsNotClosed) {
  const TempDir folder;
  const auto file = folder.path() / "results.csv";
  const auto writer = [&] { return ResultsWriter(file, {"lr"}, 1, {}); };
  for (const char* id : {"0", "1", "2", "3"}) {
    ResultRow plain;
    plain.job_id = id;
    plain.parameters = Value{{"lr", 0.125}};
    plain.objectives = {1};
    writer().append(plain);
  }
  std::string text = read_file(file);
  text.insert(text.find("0.125", text.find("0.125") + 1), "\"");  // as an editor may leave it
  std::ofstream(file) << text;
  EXPECT_EQ(writer().known(), std::set<std::string>{"0"});
  const std::string torn = read_file(folder.path() / kTornResults);
  EXPECT_EQ(read_file(file) + torn, text);
  EXPECT_EQ(std::count(torn.begin(), torn.end(), '\n'), 3);
  // What is cut off a second time does not take its place.
  append_text(file, "\"a\nb");
  (void)writer();
  EXPECT_EQ(read_file(folder.path() / kTornResults), torn + "\"a\nb");
}

TEST(ResultsCsv, ReadsTheOlderLayout) {
  const TempDir folder;
  append_text(folder.path() / "results.csv",
              "batch_size,learning_rate,arch_seq,objective,elapsed_sec\n"
              "185,0.000328,\"[115, 0, 199]\",0.93868,10213.77\n"
              "64,0.1,\"[1, 2, 3]\",-inf,10300\n");
  const auto table = read_results(folder.path());
  EXPECT_TRUE(table.older);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].parameters.at_path("arch_seq"), Value(Value::List{115, 0, 199}));
  EXPECT_EQ(table.rows[0].objectives, std::vector<double>{0.93868});
  EXPECT_EQ(table.rows[0].gathered, 10213.77);
  EXPECT_TRUE(table.rows[1].failed());
}

TEST(ResultsCsv, RefusesOtherColumnsAndNamesBadLines) {
  const TempDir folder;
  writer_in(folder).append(row("0", 1));
  EXPECT_THROW(ResultsWriter(folder.path() / "results.csv", {"other"}, 1, {}), Error);
  append_text(folder.path() / "results.csv", "1,2\n");
  try {
    (void)read_results(folder.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corruption);
    EXPECT_NE(error.message().find(":3:"), std::string::npos);
  }
  append_text(folder.path() / "other.csv", "a,b\n1,2\n");
  EXPECT_THROW((void)read_results(folder.path() / "other.csv"), Error);
}

TEST(ResultsCsv, KeepsLinesWholeWhenSeveralAppend) {
  const TempDir folder;
  std::vector<std::thread> threads;
  for (int agent = 0; agent < 4; ++agent)
    threads.emplace_back([&folder, agent] {
      auto writer = writer_in(folder);
      for (int i = 0; i < 50; ++i) writer.append(row(std::to_string(agent * 50 + i), i));
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(read_results(folder.path()).rows.size(), 200U);
}

TEST(ResultsCsv, MetricsThatAppearLaterGetColumns) {
  const TempDir folder;
  auto first = writer_in(folder), second = writer_in(folder);
  first.append(row("0", 1));
  ResultRow more = row("1", 2);
  more.metadata["accuracy"] = 0.75;
  second.append(more);
  more.job_id = "2";
  more.metadata["loss"] = 0.5;
  first.append(more);  // has the file of before the second's column open
  auto later = writer_in(folder);
  EXPECT_EQ(later.known(), (std::set<std::string>{"0", "1", "2"}));
  later.append(row("3", 3));
  const auto text = read_file(folder.path() / "results.csv");
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "p:arch_seq,p:lr,p:opt,objective,job_id,job_status,m:timestamp_submit,"
            "m:timestamp_gather,m:epochs,m:error,m:other,m:note,m:accuracy,m:loss");
  const auto table = read_results(folder.path());
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_FALSE(table.rows[0].metadata.contains("accuracy"));
  EXPECT_EQ(table.rows[1].metadata.at("accuracy"), Value(0.75));
  EXPECT_EQ(table.rows[2].metadata.at("loss"), Value(0.5));
  EXPECT_EQ(table.rows[3].objectives, std::vector<double>{3});
}

TEST(ResultsCsv, LineFeedsInNamesDoNotBreakTheFile) {
  EXPECT_EQ(metadata_name("a\nb\x1b"), "a\\nb\\u001b");
  const TempDir folder;
  const auto path = folder.path() / "results.csv";
  // As another program may write it, with line feeds in names and in fields.
  append_text(path,
              "p:arch_seq,p:lr,p:opt,objective,job_id,job_status,m:timestamp_submit,"
              "m:timestamp_gather,\"m:a\nb\",m:error,m:other\n"
              "\"[1, 0, 2]\",0.1,a,0.5,0,DONE,0,1,\"x\ny\",,\n");
  auto writer = writer_in(folder);
  writer.append(row("1", 2));  // with a new column
  auto again = writer_in(folder);
  again.append(row("2", 3));
  const auto table = read_results(path);
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0].metadata.at("a\nb"), Value("x\ny"));
  EXPECT_EQ(table.rows[1].metadata.at("epochs"), Value(3));
  EXPECT_EQ(table.rows[2].objectives, std::vector<double>{3});
  append_text(path, "1,2\n");
  try {
    (void)read_results(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(":7:"), std::string::npos) << error.message();
  }
}

TEST(ResultsCsv, ReadsMarksOfByteOrderAndTimesThatAreNone) {
  const TempDir folder;
  const auto path = folder.path() / "results.csv";
  append_text(path,
              "\xEF\xBB\xBFp:arch_seq,p:lr,p:opt,objective,job_id,job_status,"
              "m:timestamp_submit,m:timestamp_gather\n"
              "\"[1, 0, 2]\",0.1,a,0.5,0,DONE,nan,inf\n");
  writer_in(folder).append(row("1", 2));
  const auto table = read_results(path);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].parameters.at_path("lr"), Value(0.1));
  EXPECT_EQ(table.rows[0].submitted, 0);
  EXPECT_EQ(table.rows[0].gathered, 0);
}

TEST(ResultsCsv, FieldsKeepTheirTypes) {
  for (const Value& value :
       {Value(3), Value(0.1), Value(true), Value("text"), Value("3"), Value("true"), Value("[x"),
        Value(""), Value(Value::List{1, 2}), Value("two\nlines")})
    EXPECT_EQ(value_of_field(field_of_value(value)), value) << value.to_string();
  EXPECT_EQ(value_of_field("True"), Value(true));
  EXPECT_TRUE(value_of_field("").is_nothing());
}

TEST(ResultsCsv, NestsAndFlattensConfigurations) {
  const Value nested{{"model", Value{{"units", 3}}}, {"arch_seq", Value::List{0, 1}}};
  EXPECT_EQ(nested_config(flat_config(nested)), nested);
}

TEST(ResultsCsv, RefusesNamesThatAreNestedTooDeeply) {
  for (const std::size_t slashes : {100U, 300U, 100'000U}) {
    std::string name = "a";
    for (std::size_t i = 0; i < slashes; ++i) name += "/a";
    try {
      (void)nested_config(Value(Value::Dict{{name, 1}}));
      FAIL() << slashes;
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("has 100 or more '/'"), std::string::npos) << error.message();
      EXPECT_LT(error.message().size(), 300U);
    }
  }
}

}  // namespace
}  // namespace kolo::hps
