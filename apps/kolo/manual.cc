// kolo manual COMMAND: the table of a command's settings as it stands in docs/.
#include "base/errors.h"
#include "commands.h"
#include "run_settings.h"

namespace kolo::app {

int run_command_manual(const Arguments& arguments) {
  if (arguments != Arguments{"run"})
    throw_error(ErrorCode::invalid_argument, "there is a manual of: run");
  fmt::print("{}", manual_text(run_settings()));
  return 0;
}

}  // namespace kolo::app
