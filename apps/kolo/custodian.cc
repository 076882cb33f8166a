// kolo custodian: what kolo starts on other hosts in order to run programs there. Not for people.
#include <unistd.h>

#include "base/errors.h"
#include "cluster/members.h"
#include "cluster/node_keeper.h"
#include "cluster/standing.h"
#include "commands.h"
#include "exec/start.h"

namespace kolo::app {

namespace {

int run_custodian(const cli::Arguments& arguments) {
  if (arguments.size() == 3 && arguments[0] == "nodes")
    return cluster::keep_nodes(arguments[1], arguments[2]);
  if (arguments.size() == 3 && arguments[0] == "hosts")
    return cluster::print_slots_for(arguments[1], arguments[2]);
  const bool is_standing = arguments == cli::Arguments{"standing"};
  if ((!arguments.empty() && !is_standing) || ::isatty(STDIN_FILENO) != 0)
    throw_error(ErrorCode::invalid_argument,
                "kolo starts this command by itself on the hosts of a run; it takes its orders "
                "from standard input");
  return is_standing ? cluster::be_standing_custodian() : exec::be_custodian_of_standard_streams();
}

}  // namespace

constinit const Command kCustodian{
    .name = "custodian", .forward = run_custodian, .is_hidden = true};

}  // namespace kolo::app
