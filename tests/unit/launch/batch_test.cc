// Scripts, runners and node files: texts in, texts out.
#include <gmock/gmock.h>

#include "base/errors.h"
#include "launch/allocation.h"
#include "launch/batch/batch_system.h"
#include "launch/runners.h"

namespace kolo::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(BatchScript, HasWhatWasAskedForAndNothingElse) {
  for (const auto& entry : batch_systems().entries()) {
    const auto system = entry.make();
    EXPECT_EQ(system->name(), entry.name);
    BatchRequest request{.nodes = 128, .minutes = 185, .log = "/l/x.log", .commands = "run it"};
    const std::string bare = system->write_script(system->script_template(), request);
    EXPECT_TRUE(bare.starts_with("#!/bin/bash\n")) << bare;
    EXPECT_THAT(bare, HasSubstr("run it"));
    EXPECT_THAT(bare, HasSubstr("/l/x.log"));
    EXPECT_THAT(bare, Not(HasSubstr("{{")));
    EXPECT_THAT(bare, Not(HasSubstr("\n\n"))) << "an empty line where nothing was asked for";
    request.queue = "fast";
    request.project = "mine";
    request.flags = {"--one", "--two"};
    const std::string full = system->write_script(system->script_template(), request);
    for (const char* part : {"fast", "mine", "--one\n", "--two\n"})
      EXPECT_THAT(full, HasSubstr(part)) << entry.name;
  }
}

TEST(BatchScript, HasNoCommandsButItsOwn) {
  for (const auto& entry : batch_systems().entries()) {
    const auto system = entry.make();
    const auto write = [&](BatchRequest request) {
      request.commands = "true";
      return system->write_script(system->script_template(), request);
    };
    EXPECT_THROW((void)write({.flags = {"--one\ntouch /tmp/x"}, .log = "/l", .commands = ""}),
                 Error)
        << entry.name;
    EXPECT_THROW((void)write({.queue = "q\rx", .log = "/l", .commands = ""}), Error) << entry.name;
    EXPECT_THROW((void)write({.project = "p\nx", .log = "/l", .commands = ""}), Error)
        << entry.name;
    EXPECT_THROW((void)write({.log = "/l\nx", .commands = ""}), Error) << entry.name;
  }
  EXPECT_THAT(make_local()->write_script(make_local()->script_template(),
                                         {.log = "/it's $(here)", .commands = "true"}),
              HasSubstr(R"(exec >>'/it'\''s $(here)' 2>&1)"));
  EXPECT_THAT(make_slurm()->write_script(make_slurm()->script_template(),
                                         {.log = "/a b", .commands = "true"}),
              HasSubstr("#SBATCH --output=\"/a b\"\n"));
  EXPECT_THROW((void)make_pbs()->write_script("", {.log = "/a b", .commands = ""}), Error);
}

TEST(BatchScript, KnowsItsWords) {
  const auto system = make_pbs();
  EXPECT_EQ(
      system->write_script("a {{hours}} ${x} {y}", {.minutes = 185, .log = "", .commands = ""}),
      "a 03:05:00 ${x} {y}");
  EXPECT_THROW((void)system->write_script("{{hour}}", {.log = "", .commands = ""}), Error);
  EXPECT_THROW((void)system->write_script("{{open", {.log = "", .commands = ""}), Error);
}

TEST(BatchScript, AsksGridEngineForSeveralNodesOnlyByAParallelEnvironment) {
  const auto system = make_grid_engine();
  BatchRequest request{.nodes = 3, .log = "", .commands = ""};
  EXPECT_THROW(system->check(request), Error);
  request.flags = {"-m be", "-l exclusive -pe nodes 3"};
  EXPECT_NO_THROW(system->check(request));
  request.flags = {"-l x-pe=1"};
  EXPECT_THROW(system->check(request), Error);
  request.nodes = 1;
  EXPECT_NO_THROW(system->check(request));
  // Without it qdel and the end of the time would kill the launcher at once.
  EXPECT_THAT(std::string(system->script_template()), HasSubstr("#$ -notify\n"));
}

TEST(Nodefile, CountsHowOftenAHostIsNamed) {
  EXPECT_THAT(parse_nodefile("a\nb\na\n\n# c\n"), ElementsAre(Host{"a", 2}, Host{"b", 1}));
  EXPECT_THAT(parse_nodefile("a 2147483647\na 2147483647\n"), ElementsAre(Host{"a", kMostSlots}));
  EXPECT_THAT(parse_nodefile("h1 2 all.q@h1 UNDEFINED\nh2 4 all.q\n"),
              ElementsAre(Host{"h1", 2}, Host{"h2", 4}));
}

TEST(Runner, FillsInItsTemplate) {
  RanksToStart start{
      .hosts = {"a", "b"}, .ranks_per_node = 3, .threads = 4, .program = {"./x", "y z"}};
  start.flags = {"--mpi=pmi2"};
  start.variables = {"A"};
  EXPECT_THAT(runner_command("srun", start),
              ElementsAre("srun", "--overlap", "--nodes=2", "--ntasks=6", "--ntasks-per-node=3",
                          "--nodelist=a,b", "--cpus-per-task=4", "--mpi=pmi2", "./x", "y z"));
  EXPECT_THAT(runner_command("jsrun -n {ranks} {slots} {variables}", start),
              ElementsAre("jsrun", "-n", "6", "a:3,b:3", "-x", "A", "./x", "y z"));
  start.hosts = {"localhost", "localhost"};  // two nodes of one machine
  EXPECT_THAT(runner_command("aprun", start)[6], "localhost");
  EXPECT_THAT(runner_command("openmpi", start)[4], "localhost:6");
  EXPECT_THROW(runner_command("nothing", start), Error);
  EXPECT_THROW(runner_command("x {word}", start), Error);
}

}  // namespace
}  // namespace kolo::launch
