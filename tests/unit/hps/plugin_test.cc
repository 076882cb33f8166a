#include "hps/problem/plugin.h"

#include <gmock/gmock.h>

#include "base/files.h"
#include "hps/problem/catalog.h"
#include "kolo/error.h"
#include "unit/hps/error_of.h"

namespace kolo::hps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kLibrary = KOLO_TEST_LIBRARY;

TEST(PluginNameTest, LibrariesAreToldByTheirEnding) {
  EXPECT_EQ(parse_plugin_name("dir/libmy.so:Problem")->file, "dir/libmy.so");
  EXPECT_EQ(parse_plugin_name("dir/libmy.so:Problem")->symbol, "Problem");
  EXPECT_EQ(parse_plugin_name("./libmy.so.1:run")->file, "./libmy.so.1");
  EXPECT_EQ(parse_plugin_name("libmy.so")->symbol, "");
  EXPECT_FALSE(parse_plugin_name("benchmark.hps.polynome2"));
  EXPECT_FALSE(parse_plugin_name("./train --load libmy.so"));
  EXPECT_FALSE(parse_plugin_name("problem.yaml"));
}

TEST(PluginTest, OffersWhatItsFilesDeclare) {
  const Plugin plugin(kLibrary);
  EXPECT_THAT(plugin.names("problem"), ElementsAre("Problem", "Broken"));
  EXPECT_THAT(plugin.names("run"),
              testing::UnorderedElementsAre("run", "several", "fails", "annotated"));
  const HpProblem problem = plugin.problem("Problem");
  EXPECT_THAT(problem.hyperparameter_names(), ElementsAre("how", "x"));
  EXPECT_EQ(problem.default_configuration(), (Value{{"how", "plain"}, {"x", 3.0}}));

  RunningJob job(7, Value{{"x", 2.5}, {"how", "double"}}, ".");
  EXPECT_THAT(plugin.run("run")(job).objectives, ElementsAre(-5.0));
  EXPECT_THAT(plugin.run("several")(job).objectives, ElementsAre(1, 2.5));
  EXPECT_EQ(plugin.run("fails")(job).failure, "F_always");
  EXPECT_EQ(plugin.run("annotated")(job).metadata.at("id"), Value(7));
}

TEST(PluginTest, ErrorsCrossTheBorder) {
  const Plugin plugin(kLibrary);
  const Error refused = error_of([&] { (void)plugin.problem("Broken"); });
  EXPECT_EQ(refused.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(refused.message(), HasSubstr("x: real(10, -10)"));
  RunningJob job(0, Value{{"y", 2.5}}, ".");
  EXPECT_EQ(error_of([&] { (void)plugin.run("run")(job); }).code(), ErrorCode::not_found);
}

TEST(PluginTest, SaysWhatIsWrongWithALibrary) {
  const Error missing = error_of([] { Plugin("no/libmy.so"); });
  EXPECT_EQ(missing.code(), ErrorCode::not_found);
  EXPECT_THAT(missing.message(), HasSubstr("no/libmy.so"));

  TempDir dir;
  write_file_atomically(dir.path() / "libtext.so", "not a library\n");
  const Error text = error_of([&] { Plugin((dir.path() / "libtext.so").string()); });
  EXPECT_EQ(text.code(), ErrorCode::unsupported);
  EXPECT_THAT(text.message(), HasSubstr("it must be a shared library"));

  const Error stranger = error_of([] { Plugin(KOLO_TEST_STRANGER); });
  EXPECT_EQ(stranger.code(), ErrorCode::unsupported);
  EXPECT_THAT(stranger.message(), HasSubstr("kolo/hps/sdk.h"));

  const Error old = error_of([] { Plugin(KOLO_TEST_OLD_LIBRARY); });
  EXPECT_EQ(old.code(), ErrorCode::unsupported);
  EXPECT_THAT(old.message(), HasSubstr("built for kolo 0.0.9 (sdk 0)"));

  const Error symbol = error_of([] { (void)Plugin(kLibrary).problem("Problen"); });
  EXPECT_EQ(symbol.code(), ErrorCode::not_found);
  EXPECT_THAT(symbol.message(), HasSubstr("did you mean 'Problem'? known: Problem, Broken"));
}

TEST(CatalogTest, LoadsProblemsOfLibraries) {
  const LoadedProblem both = load_problem(kLibrary + ":Problem", kLibrary + ":several");
  EXPECT_EQ(both.problem.hyperparameter_names().size(), 2U);
  RunningJob job(0, Value{{"x", 3}, {"how", "plain"}}, ".");
  EXPECT_THAT(both.run(job).objectives, ElementsAre(1, 3));
  EXPECT_TRUE(both.program.empty());
  // Of several run functions, the one called run belongs to the problem.
  EXPECT_THAT(load_problem(kLibrary, "").run(job).objectives, ElementsAre(-3));
}

}  // namespace
}  // namespace kolo::hps
