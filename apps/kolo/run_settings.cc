#include "run_settings.h"

namespace kolo::app {
namespace {

constexpr Setting kRunSettings[] = {
    {"num-proc", "-np -n", "NUM_PROC", "N", "all slots of the hosts",
     "number of ranks; caps the slots"},
    {"hosts", "-H", "HOSTS", "HOSTS", "this machine",
     "where to run, as `a:4,b,[fe80::1]:2`; slots default to 1"},
    {"hostfile", "-hostfile", "HOSTFILE", "FILE", "",
     "hosts from a file, one `HOST slots=N`, `HOST:N` or `HOST` per line, `#` for comments"},
    {"env", "-x", "", "NAME[=VALUE]", "",
     "a variable for all ranks, on every host; may be given several times", true},
    {"transport", "", "TRANSPORT", "NAME", "auto",
     "how bytes move between ranks; `kolo list transports` shows the names"},
    {"gloo", "", "", "", "", "the same as `--transport gloo`"},
    {"mpi", "", "", "", "",
     "start the ranks with mpirun and move bytes with MPI, as `--transport mpi`"},
    {"network-interface", "--network-interfaces", "NETWORK_INTERFACE", "NAME",
     "the one that reaches the other hosts",
     "the interface, by name or address, over which hosts meet and exchange data"},
    {"ssh-port", "-p", "SSH_PORT", "PORT", "ssh's own", "port of ssh on the other hosts"},
    {"ssh-identity-file", "-i", "SSH_IDENTITY_FILE", "FILE", "ssh's own",
     "private key for ssh to the other hosts"},
    {"ssh", "", "SSH", "COMMAND", "ssh",
     "the ssh program and first arguments, split at blanks; no shell reads it"},
    {"remote-kolo", "", "REMOTE_BINARY", "FILE", "the path of this kolo",
     "where kolo is on the other hosts"},
    {"start-timeout", "", "START_TIMEOUT", "SECONDS", "30",
     "how long connecting to the hosts, and then the ranks' first meeting, may take"},
    {"bind-to", "", "BIND_TO", "core|socket|none", "none",
     "bind each rank to a core or a socket of its host, in turn"},
    {"output-filename", "", "OUTPUT_FILENAME", "DIRECTORY", "",
     "also write each rank's output to DIRECTORY/rank.N/stdout and stderr, as it is"},
    {"prefix-output-with-timestamp", "-prefix-timestamp", "PREFIX_OUTPUT_WITH_TIMESTAMP", "", "",
     "the time in front of each line of output"},
    {"log-level", "", "LOG_LEVEL", "LEVEL", "warning",
     "what kolo itself says: trace, debug, info, warning, error, fatal"},
    {"verbose", "", "VERBOSE", "", "", "say each step of the start and the end"},
    {"config-file", "", "CONFIG_FILE", "FILE", "",
     "a YAML file with these long names as keys; options and variables win over it"},
    {"check-build", "-cb", "", "", "", "print what this kolo can do, as `kolo info`, and exit"},
    {"help", "-h", "", "", "", "print this and exit"},
};

}  // namespace

std::span<const Setting> run_settings() { return kRunSettings; }

}  // namespace kolo::app
