#include "cli/option_set.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "base/files.h"
#include "example_command.h"
#include "kolo/error.h"

namespace kolo::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OptionSetTest : public ::testing::Test {
 protected:
  ~OptionSetTest() override {
    for (const auto& name : variables_) ::unsetenv(name.c_str());
  }
  void variable(const std::string& name, const std::string& value) {
    variables_.push_back(name);
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  std::string file(const std::string& text) {
    const auto path = dir_.path() / "options.yaml";
    write_file_atomically(path, text);
    return path.string();
  }
  Example read(const Arguments& arguments) {
    set_ = declared<Example>();
    set_.read(arguments, "the usage");
    return *static_cast<Example*>(set_.values());
  }
  std::string error_of(const Arguments& arguments) {
    try {
      read(arguments);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.message();
    }
    return "no error";
  }

  TempDir dir_;
  OptionSet set_;
  std::vector<std::string> variables_;
};

TEST_F(OptionSetTest, DefaultsStay) {
  const Example got = read({"mnist"});
  EXPECT_FALSE(got.ranks);
  EXPECT_EQ(got.mode, "min");
  EXPECT_TRUE(got.waits);
  EXPECT_FALSE(set_.given("mode"));
}

TEST_F(OptionSetTest, SpellingsOfAValue) {
  for (const Arguments& spelling : {Arguments{"-np", "4"},
                                    {"-np=4"},
                                    {"-n", "4"},
                                    {"-n4"},
                                    {"--num-proc", "4"},
                                    {"--num-proc=4"},
                                    {"--num_proc", "4"},
                                    {"--num", "4"}}) {
    Arguments all = spelling;
    all.emplace_back("mnist");
    EXPECT_EQ(read(all).ranks, 4) << ::testing::PrintToString(spelling);
  }
  EXPECT_EQ(read({"s", "--mode", "max", "--mode=min"}).mode, "min");  // the last one counts
  EXPECT_THAT(read({"s", "-x", "A=1", "--env=B=2", "-xC"}).env, ElementsAre("A=1", "B=2", "C"));
  EXPECT_THAT(read({"s", "--xy", "time", "loss"}).pair, ElementsAre("time", "loss"));
  EXPECT_EQ(read({"s", "--seed", "18446744073709551615"}).seed, ~std::uint64_t{0});
}

TEST_F(OptionSetTest, FlagsInvertTheirDefault) {
  EXPECT_TRUE(read({"s", "--verbose"}).verbose);
  EXPECT_FALSE(read({"s", "--verbose=false"}).verbose);
  EXPECT_FALSE(read({"s", "--no-wait"}).waits);
}

TEST_F(OptionSetTest, WordsAndPrograms) {
  EXPECT_EQ(read({"--mode", "max", "mnist"}).study, "mnist");
  const Example got = read({"s", "a.yaml", "--verbose", "./train", "--mode", "big", "x.yaml"});
  EXPECT_EQ(got.description, "a.yaml");
  EXPECT_TRUE(got.verbose);
  EXPECT_EQ(got.mode, "min");
  EXPECT_THAT(got.program, ElementsAre("./train", "--mode", "big", "x.yaml"));
  EXPECT_THAT(read({"s", "--", "-np", "--"}).program, ElementsAre("-np", "--"));
  EXPECT_THAT(read({"s", "--"}).program, IsEmpty());
}

TEST_F(OptionSetTest, FlagThenVariableThenFileThenDefault) {
  const std::string config = file("num-proc: 3\nmode: max\nenv: {A: 1, B: two}\n");
  EXPECT_EQ(read({"s", "--config-file", config}).ranks, 3);
  EXPECT_EQ(set_.at("num-proc").source, config + ": num-proc");
  EXPECT_THAT(read({"s", "--config-file", config}).env, ElementsAre("A=1", "B=two"));
  variable("HOROVOD_TEST_NUM_PROC", "5");
  EXPECT_EQ(read({"s", "--config-file", config}).ranks, 5);
  variable("KOLO_TEST_OLD_NUM_PROC", "6");
  EXPECT_EQ(read({"s", "--config-file", config}).ranks, 6);
  variable("KOLO_TEST_NUM_PROC", "7");
  EXPECT_EQ(read({"s", "--config-file", config}).ranks, 7);
  EXPECT_FALSE(set_.typed("num-proc"));
  EXPECT_EQ(read({"s", "--config-file", config, "-np", "8"}).ranks, 8);
  EXPECT_TRUE(set_.typed("num-proc"));
  variable("KOLO_TEST_NUM_PROC", "");  // empty is unset
  EXPECT_EQ(read({"s"}).ranks, 6);
  variable("KOLO_TEST_VERBOSE", "on");
  EXPECT_TRUE(read({"s"}).verbose);
}

TEST_F(OptionSetTest, KeysOfFiles) {
  EXPECT_EQ(read({"s", "--config-file", file("search: {mode: max}\n")}).mode, "max");
  EXPECT_EQ(read({"s", "--config-file", file("start_timeout: 2.5\n")}).seconds, 2.5);
  EXPECT_THAT(error_of({"s", "--config-file", file("num-prc: 1\n")}),
              HasSubstr("num-prc: there is no such setting; did you mean num-proc?"));
  EXPECT_THAT(error_of({"s", "--config-file", file("num-proc: [1]\n")}),
              HasSubstr("num-proc: must be one value"));
  EXPECT_THAT(error_of({"s", "--config-file", file("- 1\n")}), HasSubstr("a map of settings"));
  EXPECT_THAT(error_of({"s", "--config-file", file("num-proc: many\n")}),
              HasSubstr("options.yaml: num-proc: 'many' is not a whole number from 1 to 64"));
}

TEST_F(OptionSetTest, WhatIsPassedOverMayBeMisspelt) {
  static constexpr std::string_view kSections[] = {"search"};
  const auto said = [&](const std::string& text) {
    set_ = declared<Example>();
    set_.pass_over(kSections);
    ::testing::internal::CaptureStderr();
    set_.read({"s", "--config-file", file(text)});
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said("search: {mde: max}\n"),
              HasSubstr("search.mde has no meaning for kolo and is ignored; did you mean "
                        "search.mode?"));
  EXPECT_THAT(said("search: {tea: green}\n"), HasSubstr("search.tea has no meaning for kolo and is "
                                                        "ignored\n"));
}

TEST_F(OptionSetTest, MistakesAreNamed) {
  EXPECT_EQ(error_of({"s", "--start-timout", "3"}),
            "there is no option --start-timout; did you mean --start-timeout?");
  EXPECT_EQ(error_of({"s", "--varable", "A=1"}),
            "there is no option --varable; did you mean --variable?");
  EXPECT_EQ(error_of({"s", "--npp", "4"}), "there is no option --npp; did you mean -np?");
  EXPECT_EQ(error_of({"s", "--zzz"}), "there is no option --zzz; --help lists them");
  EXPECT_EQ(error_of({"s", "-q"}), "there is no option -q; --help lists them");
  EXPECT_EQ(error_of({"s", "-np", "0"}), "--num-proc: '0' is not a whole number from 1 to 64");
  EXPECT_EQ(error_of({"s", "-np", "2.5"}), "--num-proc: '2.5' is not a whole number from 1 to 64");
  EXPECT_EQ(error_of({"s", "-np", ""}), "--num-proc: '' is not a whole number from 1 to 64");
  EXPECT_EQ(error_of({"s", "--seed", "-1"}), "--seed: '-1' is not a whole number");
  EXPECT_EQ(error_of({"s", "--start-timeout", "nan"}),
            "--start-timeout: 'nan' is not a number of at least 0.001");
  EXPECT_EQ(error_of({"s", "--mode", "low"}), "--mode: must be min or max, not 'low'");
  EXPECT_EQ(error_of({"s", "--verbose=loud"}), "--verbose: 'loud' is neither true nor false");
  variable("KOLO_TEST_NUM_PROC", "two");
  EXPECT_THAT(error_of({"s"}), HasSubstr("KOLO_TEST_NUM_PROC: 'two' is not a whole number"));
}

TEST_F(OptionSetTest, MissingValuesAndArguments) {
  EXPECT_EQ(error_of({"s", "-np"}), "--num-proc needs a value: --num-proc N");
  EXPECT_EQ(error_of({"s", "--mode", "--verbose"}),
            "--mode needs a value: --mode min|max; write --mode=--verbose if that is the value");
  EXPECT_EQ(read({"s", "--config-file", file("{}"), "--env=--verbose"}).env.front(), "--verbose");
  EXPECT_EQ(error_of({"s", "--xy", "time"}), "--xy needs a value: --xy X Y");
  EXPECT_EQ(error_of({}), "STUDY is missing; usage: the usage");
  EXPECT_THAT(error_of({"s", "--no"}), "no error");  // a unique beginning
  EXPECT_EQ(error_of({"s", "--n", "3"}), "--n is not unique: it could be --num-proc, --no-wait");
}

TEST_F(OptionSetTest, HelpNeedsNothingElse) {
  read({"--help", "--nonsense"});
  EXPECT_TRUE(set_.wants_help());
  read({"s", "./train", "--help"});  // the program's own
  EXPECT_FALSE(set_.wants_help());
}

}  // namespace
}  // namespace kolo::cli
