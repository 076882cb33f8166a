#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>

#include "base/fd.h"
#include "example_command.h"
#include "kolo/error.h"

namespace kolo::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Command kExample{.name = "example",
                           .summary = "Show how the help of a command looks",
                           .examples = "kolo example mnist\n",
                           .options = declared<Example>};

TEST(HelpTest, SaysEverythingThatTheTableHas) {
  const std::string help = help_text("kolo example", kExample);
  EXPECT_THAT(help, ::testing::StartsWith("Show how the help of a command looks.\n\nUsage: "));
  EXPECT_THAT(
      help,
      AllOf(HasSubstr("Usage: kolo example [OPTIONS] STUDY [FILE.yaml] [PROGRAM [ARGUMENTS]...]\n"),
            HasSubstr("\nExamples:\n  kolo example mnist\n"),
            HasSubstr("  -np, -n, --num-proc N\n          Start N ranks. "
                      "[env: KOLO_TEST_NUM_PROC, KOLO_TEST_OLD_NUM_PROC]\n"),
            HasSubstr("  --start-timeout SECONDS\n          Wait so long. [default: 30]\n"),
            HasSubstr("Set a variable. May be given several times.\n")));
}

TEST(HelpTest, TheManualIsATable) {
  EXPECT_THAT(manual_table(declared<Example>()),
              HasSubstr("| `--mode min\\|max` | `KOLO_TEST_MODE` | min | Look for small or large "
                        "values. |\n"));
}

TEST(HelpTest, ThePageForManHasTheSameWords) {
  const std::string page = man_page("kolo example", kExample, "1.2.3");
  EXPECT_THAT(page,
              ::testing::StartsWith(".TH KOLO-EXAMPLE 1 \"\" \"kolo 1.2.3\" \"kolo\"\n.SH NAME\n"
                                    "kolo-example \\- Show how the help"));
  EXPECT_THAT(page, AllOf(HasSubstr(".SH SYNOPSIS\n.B kolo example\n[OPTIONS] STUDY [FILE.yaml]"),
                          HasSubstr(".TP\n.B \\-np, \\-n, \\-\\-num\\-proc N\nStart N ranks. "),
                          HasSubstr(".SH EXAMPLES\n.nf\nkolo example mnist\n.fi\n"),
                          HasSubstr(".SH SEE ALSO\nkolo(1)\n")));
}

TEST(HelpTest, NoTextOfAPageIsTakenForAMacro) {
  constexpr Command kOdd{.name = "odd", .summary = "Say", .notes = ".so /etc/passwd\n'tis \\fB"};
  EXPECT_THAT(man_page("kolo odd", kOdd, "1"),
              HasSubstr(".PP\n\\&.so /etc/passwd\n.PP\n\\&'tis \\efB\n"));
}

TEST(HelpTest, HelpIsACommandToo) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(run_program(kExample, {"help"}), 0);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), help_text("example", kExample));
}

// A table in a file that lacks its end would be taken for the whole.
TEST(HelpTest, OutputThatCannotBeWrittenIsAnError) {
  std::fflush(stdout);
  const Fd before(::dup(STDOUT_FILENO)), full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(before.valid() && full.valid());
  ::testing::internal::CaptureStderr();
  ::dup2(full.get(), STDOUT_FILENO);
  const int status = run_program(kExample, {"help"});
  ::dup2(before.get(), STDOUT_FILENO);
  std::clearerr(stdout);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "example: cannot write the output: No space left on device\n");
}

int fails(OptionSet& /*given*/) { throw Error(ErrorCode::not_found, "no such study"); }

TEST(HelpTest, ErrorsAreOneLineAndAStatus) {
  constexpr Command kFails{.name = "kolo fails", .options = declared<Example>, .run = fails};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_program(kFails, {"mnist"}), 1);
  EXPECT_EQ(run_program(kFails, {"mnist", "--mode", "low"}), 2);
  EXPECT_EQ(run_program(kFails, {}), 2);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "kolo fails: no such study\n"
            "kolo fails: --mode: must be min or max, not 'low'\n"
            "kolo fails: STUDY is missing; usage: kolo fails [OPTIONS] STUDY [FILE.yaml] [PROGRAM "
            "[ARGUMENTS]...]\n");
}

TEST(HelpTest, CommandsAreListedInGroups) {
  static constexpr Command kRun{.name = "run", .summary = "Run", .heading = "Commands to run"};
  static constexpr Command kStop{.name = "stop", .summary = "Stop"};
  static constexpr Command kInfo{
      .name = "information", .summary = "Tell", .heading = "Other commands"};
  static constexpr const Command* kParts[] = {&kRun, &kStop, &kInfo};
  EXPECT_THAT(help_text("root", {.name = "root", .subcommands = kParts}),
              HasSubstr("\nCommands to run:\n"
                        "  run          Run\n"
                        "  stop         Stop\n"
                        "\nOther commands:\n"
                        "  information  Tell\n"));
  static constexpr const Command* kPlain[] = {&kStop};
  EXPECT_THAT(help_text("root", {.name = "root", .subcommands = kPlain}),
              HasSubstr("\nCommands:\n  stop  Stop\n"));
}

TEST(HelpTest, ACommandWithATypoThatIsTakenForAnArgumentIsSuggested) {
  static constexpr const Command* kParts[] = {&kExample};
  constexpr Command kRoot{.name = "root",
                          .options = declared<Example>,
                          .run = [](OptionSet&) { return 0; },
                          .subcommands = kParts};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_program(kRoot, {"exmaple", "--seed", "x"}), 2);
  EXPECT_EQ(run_program(kRoot, {"mnist", "--seed", "x"}), 2);
  const std::string printed = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(printed, HasSubstr("; or did you mean the command 'root example'?\n"));
  EXPECT_THAT(printed.substr(printed.find('\n') + 1),
              ::testing::Not(HasSubstr("did you mean the command")));
}

TEST(HelpTest, WordsThatAreNoCommandAreNamed) {
  static constexpr const Command* kParts[] = {&kExample};
  constexpr Command kRoot{.name = "root", .subcommands = kParts};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_program(kRoot, {"exmaple"}), 2);
  EXPECT_EQ(run_program(kRoot, {"help", "exmaple"}), 2);
  EXPECT_EQ(run_program(kRoot, {"--verison"}), 2);
  EXPECT_EQ(run_program(kRoot, {"-q"}), 2);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "root: command 'exmaple' is unknown; did you mean 'example'? known: example\n"
            "root: command 'exmaple' is unknown; did you mean 'example'? known: example\n"
            "root: option '--verison' is unknown; did you mean '--version'? known: --help, "
            "--version\n"
            "root: option '-q' is unknown; known: --help, --version\n");
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(run_program(kRoot, {"help", "--help"}), 0);
  EXPECT_EQ(run_program(kRoot, {"help", "example", "mnist"}), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("Usage: root example"));
}

}  // namespace
}  // namespace kolo::cli
