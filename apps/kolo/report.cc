// kolo report: from inside a trial, a result to its study.
#include <fmt/format.h>

#include "base/env.h"
#include "base/errors.h"
#include "commands.h"
#include "tune/protocol/trial_client.h"

namespace kolo::app {
namespace {

/// The trial shall end: a status that no success has.
constexpr int kStop = 3;

}  // namespace

int run_command_report(const Arguments& arguments) {
  Arguments words = arguments;
  std::string checkpoint;
  for (auto word = words.begin(); word != words.end();) {
    if (*word == "--help" || *word == "-h") {
      fmt::print(
          "Reports results of the trial that calls it, and says whether to go on.\n\n"
          "Usage: kolo report [--checkpoint DIRECTORY] NAME=VALUE…\n\n"
          "  kolo report loss=0.31 epoch=4 || exit 0\n\n"
          "Exit status: 0 go on, 3 the trial shall end, 1 the study is gone.\n");
      return 0;
    }
    if (*word == "--checkpoint" && word + 1 != words.end()) {
      checkpoint = *(word + 1);
      word = words.erase(word, word + 2);
    } else {
      ++word;
    }
  }
  if (words.empty())
    throw_error(ErrorCode::invalid_argument, "what? Usage: kolo report NAME=VALUE…");
  const auto metrics = tune::parse_assignments(words);
  // Of a trial of several ranks, rank 0 speaks.
  if (setting_integer("RANK").value_or(0) != 0) return 0;
  auto link = tune::TrialLink::from_environment(/*own_connection=*/true);
  link.send(tune::report_line(metrics, checkpoint));
  return link.wait_for_answer().reply == tune::Reply::proceed ? 0 : kStop;
}

}  // namespace kolo::app
