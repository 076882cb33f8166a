// kolo analytics, as people type it, on searches that kolo hps made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "base/yaml.h"
#include "kolo/error.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Analytics : public testing::Test {
 protected:
  CommandResult kolo(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), KOLO_BINARY);
    return run_command(arguments, Deadline::after(60s));
  }
  CommandResult analytics(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "analytics");
    return kolo(std::move(arguments));
  }
  std::string path(const std::string& name) const { return (scratch_.path() / name).string(); }
  void search(const std::string& name, const std::string& problem, int evaluations) {
    const auto result =
        kolo({"hps", "random", "--problem", problem, "--max-evals", std::to_string(evaluations),
              "--evaluator", "thread", "--num-workers", "2", "--log-dir", path(name)});
    ASSERT_TRUE(result.ok()) << result.errors;
  }
  std::string content(const std::string& name) { return read_file(path(name)); }

  TempDir scratch_{"kolo-analytics"};
};

TEST_F(Analytics, TheBestAreTheSameInEveryForm) {
  search("sums", "benchmark.hps.toy_sum", 12);
  const auto table = analytics({"topk", path("sums"), "-k", "3"});
  ASSERT_TRUE(table.ok()) << table.errors;
  EXPECT_THAT(table.output, HasSubstr("job_id  objective  x"));
  for (const char* ending : {"best.json", "best.yaml", "best.csv"})
    ASSERT_TRUE(
        analytics({"topk", path("sums") + "/results.csv", "-k", "3", "-o", path(ending)}).ok());
  const Json json = parse_json(content("best.json"), "best.json");
  ASSERT_EQ(json.size(), 3U);
  EXPECT_EQ(parse_yaml(content("best.yaml"), "best.yaml"), json);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(json[i]["objective"].get<double>(),
              json[i]["parameters"]["x"].get<double>() + json[i]["parameters"]["y"].get<double>());
    if (i > 0) {
      EXPECT_LE(json[i]["objective"], json[i - 1]["objective"]);
    }
  }
  // What was written is a results file again.
  const auto again = analytics({"topk", path("best.csv"), "-k", "1", "-o", path("again.json")});
  ASSERT_TRUE(again.ok()) << again.errors;
  EXPECT_EQ(parse_json(content("again.json"), "again.json")[0]["parameters"],
            json[0]["parameters"]);
}

TEST_F(Analytics, SearchesAreComparedAndDrawn) {
  search("few", "benchmark.hps.branin", 8);
  search("more", "benchmark.hps.branin", 16);
  const auto compared =
      analytics({"compare", path("few"), path("more"), "-o", path("compare.json")});
  ASSERT_TRUE(compared.ok()) << compared.errors;
  const Json json = parse_json(content("compare.json"), "compare.json");
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["evaluations"], 8);
  EXPECT_EQ(json[1]["evaluations"], 16);
  EXPECT_EQ(json[1]["after"], 8);
  // The same seed: the first eight are the same points, whenever they ended.
  EXPECT_GE(json[1]["best"], json[0]["best"]);
  EXPECT_THAT(analytics({"compare", path("few"), path("more")}).output, HasSubstr("best of 8"));

  ASSERT_TRUE(analytics({"quickplot", path("few"), path("more"), "--xy", "time", "objective", "-o",
                         path("plot.svg")})
                  .ok());
  const std::string svg = content("plot.svg");
  EXPECT_THAT(svg, testing::StartsWith("<svg "));
  EXPECT_THAT(svg, HasSubstr(">few</text>"));
  EXPECT_THAT(svg, HasSubstr("24 evaluations"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
}

// The width and the height that the head of a PNG says.
std::pair<unsigned, unsigned> size_of_png(const std::string& bytes) {
  const auto number = [&](std::size_t at) {
    unsigned value = 0;
    for (std::size_t i = at; i < at + 4; ++i)
      value = value << 8U | static_cast<unsigned char>(bytes[i]);
    return value;
  };
  return {number(16), number(20)};
}

TEST_F(Analytics, PicturesMayBePng) {
  search("sums", "benchmark.hps.toy_sum", 5);
  const auto plot = [&](const std::string& file) {
    return analytics({"quickplot", path("sums"), "-o", path(file)});
  };
  const char* const path_before = ::getenv("PATH");
  const std::string before = path_before == nullptr ? "" : path_before;
  ::setenv("PATH", path("sums").c_str(), 1);
  const auto refused = plot("none.png");
  ::setenv("PATH", before.c_str(), 1);
  EXPECT_EQ(exit_code_of(refused.status), 1);
  EXPECT_THAT(refused.errors, HasSubstr("install one (librsvg2-bin has the smallest)"));
  EXPECT_FALSE(std::filesystem::exists(path("none.png")));

  bool is_any_here = false;
  for (const char* program : {"rsvg-convert", "inkscape", "magick"}) try {
      static_cast<void>(find_program(program, before));
      is_any_here = true;
    } catch (const Error&) {
      // the next one
    }
  if (!is_any_here) GTEST_SKIP() << "neither rsvg-convert nor inkscape nor magick is installed";
  const auto made = plot("plot.png");
  ASSERT_TRUE(made.ok()) << made.errors;
  const std::string png = content("plot.png");
  ASSERT_THAT(png, testing::StartsWith("\x89PNG\r\n\x1a\n"));
  const auto [width, height] = size_of_png(png);
  EXPECT_GE(width, 300U);
  EXPECT_GE(height, 200U);
  EXPECT_GT(png.size(), 2000U);  // it is not blank
}

TEST_F(Analytics, WorkloadAndLogTellTheSameStory) {
  search("sums", "benchmark.hps.toy_sum", 10);
  ASSERT_TRUE(analytics({"workload", path("sums"), "-o", path("load.json")}).ok());
  const Json load = parse_json(content("load.json"), "load.json");
  EXPECT_EQ(load["timestamps"].size(), load["num_jobs_running"].size());
  EXPECT_EQ(load["num_workers"], 2);
  EXPECT_EQ(load["num_jobs_running"].back(), 0);
  for (const auto& running : load["num_jobs_running"]) EXPECT_LE(running, 2);
  EXPECT_THAT(analytics({"workload", path("sums")}).output, HasSubstr("% of 2 workers used"));
  ASSERT_TRUE(analytics({"workload", path("sums"), "-o", path("load.svg")}).ok());
  EXPECT_THAT(content("load.svg"), HasSubstr("jobs running"));

  std::ofstream(path("sums") + "/kolo.log", std::ios::app) << "{\"time\": 1, \"eve";
  const auto parsed = analytics({"parse", path("sums"), "-o", path("log.json")});
  ASSERT_TRUE(parsed.ok()) << parsed.errors;
  EXPECT_THAT(parsed.errors, HasSubstr("this event is incomplete"));
  EXPECT_EQ(parse_json(content("log.json"), "log.json")["summary"]["evaluations"], 10);
}

TEST_F(Analytics, ATornLineIsLeftOut) {
  search("sums", "benchmark.hps.toy_sum", 5);
  const auto file = scratch_.path() / "sums" / "results.csv";
  ASSERT_EQ(::truncate(file.c_str(), static_cast<off_t>(std::filesystem::file_size(file) - 7)), 0);
  const auto result = analytics({"compare", path("sums"), "-o", path("compare.json")});
  ASSERT_TRUE(result.ok()) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("the last line is incomplete"));
  EXPECT_EQ(parse_json(content("compare.json"), "compare.json")[0]["evaluations"], 4);
}

TEST_F(Analytics, MistakesAreTold) {
  const auto expect = [&](std::vector<std::string> arguments, int status, const char* words) {
    const auto result = analytics(std::move(arguments));
    EXPECT_EQ(exit_code_of(result.status), status) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(words));
  };
  expect({"topkk"}, 2, "did you mean 'topk'? known: topk, parse, quickplot, workload, compare");
  expect({"topk"}, 2, "usage: kolo analytics topk");
  expect({"topk", path("nowhere")}, 1, "nowhere");
  expect({"topk", path("nowhere"), "-o", "best.txt"}, 2, "must end in .yaml, .csv, .json");
  expect({"quickplot", path("nowhere"), "--xy", "time"}, 2, "--xy needs a value: --xy X Y");
  search("sums", "benchmark.hps.toy_sum", 3);
  expect({"quickplot", path("sums"), "--xy", "p:z", "objective", "-o", path("x.svg")}, 1,
         "column 'p:z' is unknown");
  expect({"parse", path("sums") + "/results.csv"}, 1, "is an event");
  EXPECT_FALSE(std::filesystem::exists(path("x.svg")));
}

TEST_F(Analytics, ProblemsAreListed) {
  const auto result = kolo({"list", "problems"});
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result.output, HasSubstr("benchmark.hps.hartmann6D"));
}

}  // namespace
}  // namespace kolo::test
