// kolo agent: what `kolo run` starts on other hosts. Not for people.
#include "launch/agent.h"

#include <unistd.h>

#include "base/errors.h"
#include "commands.h"

namespace kolo::app {

int run_command_agent(const Arguments& arguments) {
  if (!arguments.empty() || ::isatty(STDIN_FILENO) != 0)
    throw_error(ErrorCode::invalid_argument, "this is kolo run's own helper on other hosts");
  // Copies: numbers 0 and 1 then stay free of what the agent does with these.
  return launch::Agent(Fd(::dup(STDIN_FILENO)), Fd(::dup(STDOUT_FILENO))).run();
}

}  // namespace kolo::app
