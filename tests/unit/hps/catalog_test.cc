#include "hps/problem/catalog.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/files.h"
#include "unit/hps/error_of.h"

namespace kolo::hps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CatalogTest : public testing::Test {
 protected:
  std::string file(const std::string& name, std::string_view content, mode_t mode = 0644) const {
    const auto path = dir_.path() / name;
    write_file_atomically(path, content, mode);
    return path.string();
  }
  TempDir dir_;
};

TEST_F(CatalogTest, BuiltInsBringTheirRun) {
  const LoadedProblem loaded = load_problem("deephyper.benchmark.hps.dtlz2.Problem", "");
  EXPECT_EQ(loaded.name, "benchmark.hps.dtlz2");
  EXPECT_EQ(loaded.objectives, 2U);
  ASSERT_TRUE(loaded.run);
  EXPECT_TRUE(loaded.program.empty());
  // One's own function on another's space.
  const LoadedProblem mixed = load_problem("benchmark.hps.ackley", "benchmark.hps.rosen.run");
  RunningJob job(0, Value{{"x0", 1}, {"x1", 1}}, ".");
  EXPECT_EQ(mixed.run(job).objectives[0], 0);
}

TEST_F(CatalogTest, FilesMayNameTheirProgram) {
  const std::string yaml = file("train.yaml",
                                "name: small\nspace: {lr: {loguniform: [0.001, 1]}}\n"
                                "program: [./train, --lr, \"{lr}\", 3]\nobjectives: 2\n");
  const LoadedProblem loaded = load_problem(yaml, "");
  EXPECT_EQ(loaded.name, "small");
  EXPECT_EQ(loaded.objectives, 2U);
  EXPECT_FALSE(loaded.run);
  ASSERT_EQ(loaded.program.size(), 4U);
  EXPECT_EQ(loaded.program[0],
            (std::filesystem::path(yaml).parent_path() / "train").string());  // beside the file
  EXPECT_THAT(std::vector(loaded.program.begin() + 1, loaded.program.end()),
              ElementsAre("--lr", "{lr}", "3"));

  const std::string json = file("plain.json", R"({"x": {"integer": [0, 3]}})");
  EXPECT_EQ(load_problem(json, "").name, "plain");
  EXPECT_FALSE(load_problem(json, "").run);
  EXPECT_TRUE(load_problem(json, "").program.empty());
  // What is asked for replaces the program of the file.
  EXPECT_TRUE(load_problem(yaml, "benchmark.hps.levy.run").program.empty());
}

TEST_F(CatalogTest, SectionsMayStandBesideTheProgram) {
  const std::string yaml =
      file("p.yaml",
           "parameters: {a: {integer: [1, 3]}, b: {choice: [x, y]}}\n"
           "conditions: {a: {equals: [b, x]}}\nprogram: [sh]\nstarting_points: [{b: y}]\n");
  const LoadedProblem loaded = load_problem(yaml, "");
  EXPECT_THAT(loaded.program, ElementsAre("sh"));
  EXPECT_TRUE(loaded.problem.space()->has_conditions());
  EXPECT_EQ(loaded.problem.starting_points().size(), 1U);
}

TEST_F(CatalogTest, ProgramsAreRunFunctions) {
  const std::string program = file("my train", "#!/bin/sh\necho 1\n", 0755);
  EXPECT_THAT(load_problem("benchmark.hps.levy", program).program, ElementsAre(program));
  EXPECT_FALSE(load_problem("benchmark.hps.levy", program).run);
  EXPECT_THAT(load_problem("benchmark.hps.levy", "-- sh -c 'echo {x0}' --lr").program,
              ElementsAre("sh", "-c", "echo {x0}", "--lr"));
}

TEST_F(CatalogTest, WhatIsUnknownIsToldWithWhatIsKnown) {
  const Error name = error_of([] { (void)load_problem("benchmark.hps.polinome2", ""); });
  EXPECT_EQ(name.code(), ErrorCode::not_found);
  EXPECT_THAT(name.message(), HasSubstr("did you mean 'benchmark.hps.polynome2'?"));
  EXPECT_THAT(name.message(), HasSubstr("benchmark.hps.toy_conditional"));
  EXPECT_THAT(error_of([] { (void)load_problem("nowhere.yaml", ""); }).message(),
              HasSubstr("'nowhere.yaml': there is no such file"));
  EXPECT_EQ(error_of([] { (void)load_problem("", ""); }).code(), ErrorCode::invalid_argument);
  EXPECT_THAT(
      error_of([] { (void)load_problem("benchmark.hps.levy", "./no-such-train"); }).message(),
      HasSubstr("run function './no-such-train' is unknown"));
  const std::string text = file("train.sh", "echo 1\n");
  EXPECT_THAT(error_of([&] { (void)load_problem("benchmark.hps.levy", text); }).message(),
              HasSubstr("chmod +x"));
  const std::string broken = file("broken.json", "{\"a\": ");
  EXPECT_THAT(error_of([&] { (void)load_problem(broken, ""); }).message(),
              HasSubstr("broken.json:1:"));
  const std::string words = file("words.yaml", "{space: {a: {integer: [1, 2]}}, program: ./train}");
  EXPECT_THAT(error_of([&] { (void)load_problem(words, ""); }).message(),
              HasSubstr("words.yaml: program: needs a list of words"));
}

}  // namespace
}  // namespace kolo::hps
