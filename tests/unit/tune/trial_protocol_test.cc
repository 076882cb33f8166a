#include "tune/protocol/trial_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/errors.h"
#include "tune/study/program_study.h"

namespace kolo::tune {
namespace {

TEST(TrialProtocol, LinesComeBack) {
  const TrialLine report = parse_trial_line(report_line(Value{{"loss", 0.5}}, "/c/1"));
  EXPECT_EQ(report.kind, TrialLine::Kind::report);
  EXPECT_EQ(report.metrics.at_path("loss").as_number(), 0.5);
  EXPECT_EQ(report.checkpoint, "/c/1");
  EXPECT_FALSE(report.is_plain);
  const TrialLine result = parse_trial_line(result_line(Value{{"loss", 0.25}}, "/c/3"));
  EXPECT_EQ(result.kind, TrialLine::Kind::result);
  EXPECT_EQ(result.metrics.at_path("loss").as_number(), 0.25);
  EXPECT_EQ(result.checkpoint, "/c/3");
  EXPECT_EQ(parse_trial_line(checkpoint_line("/c/2")).kind, TrialLine::Kind::checkpoint);
  EXPECT_EQ(parse_trial_line(failure_line("oh \"no\"")).error, "oh \"no\"");
  EXPECT_TRUE(parse_trial_line(hello_line("t", true)).saves_on_request);
  for (const Reply reply : {Reply::proceed, Reply::stop, Reply::pause}) {
    const auto answer = parse_study_line(answer_line({reply, true})).answer;
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->reply, reply);
    EXPECT_TRUE(answer->save);
  }
  EXPECT_FALSE(parse_study_line(stop_line()).answer);
}

TEST(TrialProtocol, TheShortFormIsADictionaryOfMetrics) {
  const TrialLine line = parse_trial_line(R"({"loss": "NaN", "epoch": 3})");
  EXPECT_TRUE(line.is_plain);
  EXPECT_TRUE(std::isnan(line.metrics.at_path("loss").as_number()));
}

TEST(TrialProtocol, RefusesWhatItDoesNotKnow) {
  for (const char* line :
       {"7", "[1]", "{\"kolo\": 2, \"report\": {}}", "{\"kolo\": 1}",
        "{\"kolo\": 1, \"report\": 7}", "{\"kolo\": 1, \"result\": 7}", "not json", "{"})
    EXPECT_THROW(parse_trial_line(line), Error) << line;
}

TEST(TrialProtocol, RefusesWhatIsNestedTooDeeply) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_NO_THROW(parse_trial_line(R"({"deep": )" + nested(99) + "}"));
  for (const std::string& line : {R"({"deep": )" + nested(100) + "}",
                                  R"({"kolo": 1, "report": {"deep": )" + nested(100) + "}}",
                                  R"({"kolo": 1, "result": {"deep": )" + nested(100) + "}}"})
    EXPECT_THAT([&line] { parse_trial_line(line); },
                testing::ThrowsMessage<Error>(testing::HasSubstr("more than 100 deep")))
        << line;
}

TEST(TrialProtocol, TheLastLineOfOutputInThreeForms) {
  EXPECT_EQ(parse_last_words("x\n{\"a\": 1}\n\n", "m")->at_path("a").as_integer(), 1);
  EXPECT_EQ(parse_last_words("a=0.5 b=text", "m")->at_path("b").as_string(), "text");
  EXPECT_EQ(parse_last_words("0.25\n", "m")->at_path("m").as_number(), 0.25);
  EXPECT_FALSE(parse_last_words("0.25\n", ""));
  EXPECT_FALSE(parse_last_words("all went well", "m"));
  EXPECT_FALSE(parse_last_words("", "m"));
}

TEST(ProgramStudy, FillsInParameters) {
  const Value config{{"lr", 0.1}, {"model", {{"units", 64}}}, {"name", "x y"}};
  EXPECT_THAT(
      fill_in({"./t", "--lr={lr}", "{model/units}", "{name}", "{trial_dir}/o", "{\"j\":1}",
               "${HOME}", "{}"},
              config, "id", "/d", "/c"),
      testing::ElementsAre("./t", "--lr=0.1", "64", "x y", "/d/o", "{\"j\":1}", testing::_, "{}"));
  EXPECT_THROW(fill_in({"{lrr}"}, config, "", "", ""), Error);
  EXPECT_THAT(fill_in({"{{lrr}} {{lr}} {\"a\":{\"b\":1}}"}, config, "", "", ""),
              testing::ElementsAre("{lrr} {lr} {\"a\":{\"b\":1}}"));
}

TEST(TrialWords, PlaceholdersAreCheckedBeforeTheFirstTrial) {
  const auto space = search::Space::Builder()
                         .add("lr", search::uniform(0, 1))
                         .add("optimizer", search::choice({"sgd", "adam"}))
                         .add("sgd/momentum", search::uniform(0, 1))
                         .add("sgd/nesterov", true)
                         .add("model", Value{{"units", 64}})
                         .condition("sgd", search::equals("optimizer", "sgd"))
                         .build();
  check_placeholders({"./t", "{lr}", "{model/units}", "{model}", "{trial_dir}/{trial_id}",
                      "${HOME}", "{{learning_rate}}", "{1,2}"},
                     *space);
  const auto refusal = [&](const char* word) -> std::string {
    try {
      check_placeholders({word}, *space);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal("--lr={Lr}"), testing::HasSubstr("did you mean 'lr'?"));
  EXPECT_THAT(refusal("{learning_rate}"), testing::HasSubstr("known: lr, optimizer"));
  EXPECT_THAT(refusal("{sgd/momentum}"), testing::HasSubstr("only if a condition holds"));
  EXPECT_THAT(refusal("{sgd/nesterov}"), testing::HasSubstr("only if a condition holds"));
}

TEST(ProgramStudy, ADescriptionIsChecked) {
  const Json good = Json::parse(
      R"({"space": {"x": {"uniform": [0, 1]}}, "program": ["true"], "search": "tpe:n_startup=5",
          "metric": "y", "mode": "max", "np": 2})");
  const auto study = ProgramStudy::from_json(good);
  EXPECT_EQ(study.options.search_alg.name, "tpe");
  EXPECT_EQ(study.options.search_alg.settings.at("n_startup").as_integer(), 5);
  EXPECT_EQ(study.options.resources_per_trial.cpu, 2);
  Json bad = good;
  bad["metrc"] = "y";
  try {
    ProgramStudy::from_json(bad);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean 'metric'?"));
  }
  // What would be left out is said.
  for (const char* part : {"search", "scheduler"}) {
    bad = good;
    bad[part] = Json::parse(R"({"name": "asha", "setings": {"max_t": 9}, "max_t": 9})");
    try {
      ProgramStudy::from_json(bad);
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(part));
      EXPECT_THAT(error.what(), testing::HasSubstr("put it under 'settings'"));
    }
  }
  bad = good;
  bad.erase("program");
  EXPECT_THROW(ProgramStudy::from_json(bad), Error);
  for (const Json& np : {Json(4294967297), Json(1e300), Json(2.5), Json::array({1, 1e300})}) {
    bad = good;
    bad["np"] = np;
    EXPECT_THROW(ProgramStudy::from_json(bad), Error) << np;
  }
}

TEST(TrialProtocol, DeepHypersLineMayStandAnywhere) {
  const auto words = [](std::string_view output) {
    return parse_last_words(output, "objective").value().at_path("objective");
  };
  EXPECT_EQ(words("DH-OUTPUT: 0.5\nthank you\n"), Value(0.5));
  EXPECT_EQ(words("DH-OUTPUT: 0.5\nDH-OUTPUT:0.75\r\n7\n"), Value(0.75));
  EXPECT_EQ(words("DH-OUTPUT: F_memory\n"), Value("F_memory"));
  EXPECT_EQ(words("not DH-OUTPUT: 3\n4\n"), Value(4));
}

}  // namespace
}  // namespace kolo::tune
