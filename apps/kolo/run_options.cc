// Each row ties a name to a member of RunOptions. The same row gives the option of the command
// line, its variables, its key in a file, the help and the completion, so these cannot disagree.
// The tables are split by heading, in the order in which the help shows them. Where the default is
// computed later, the member is optional or empty and fallback() says in words what happens. Keys
// with a dot are sections of Horovod's files; sections without a meaning here are passed over
// instead of being refused, so that such files can be used unchanged.
#include "run_options.h"

#include "names.h"

namespace kolo::app {
namespace {

using cli::Option;
using namespace cli::rows;

constexpr Option<RunOptions> kRunProgram[] = {
    {&RunOptions::program, "PROGRAM", "",
     "The program that every rank runs, and its arguments. Options of kolo come before it.",
     takes(cli::Takes::program)},
};

constexpr Option<RunOptions> kRunRanks[] = {
    {&RunOptions::num_proc, "num-proc", "N",
     "Start N ranks in total. The hosts must have at least as many slots.", aliases("-np -n"),
     variables("NUM_PROC"), fallback("one rank for each slot of the hosts"), least(1),
     most(1'000'000)},
    {&RunOptions::virtual_ranks, "virtual-ranks", "N",
     "Train with the same bits whatever the number of ranks: each step has N micro-batches, which "
     "the ranks share out. Ranks compute with one thread unless OMP_NUM_THREADS is set.",
     variables("VIRTUAL_RANKS"), fallback("none"), least(1), most(65'536)},
    {&RunOptions::hosts, "hosts", "HOSTS",
     "Run on these hosts. HOST:N gives a host N slots, as in `a:4,b,[fe80::1]:2`; a host without a "
     "number has one.",
     aliases("-H"), variables("HOSTS"), fallback("this machine")},
    {&RunOptions::hostfile, "hostfile", "FILE",
     "Read the hosts from a file with one `HOST slots=N`, `HOST:N` or `HOST` on each line; `#` "
     "starts a comment.",
     aliases("-hostfile"), variables("HOSTFILE")},
    {&RunOptions::cluster, "cluster", "NAME",
     "Run on the hosts of this cluster, which `kolo up` made; the ranks get slots that nobody else "
     "has.",
     variables("CLUSTER"), names(cluster_names)},
    {&RunOptions::cluster_wait, "cluster-wait", "SECONDS",
     "Wait up to this many seconds for slots of the cluster that are in use.", least(0), most(1e9)},
    {&RunOptions::bind_to, "bind-to", "core|socket|none",
     "Bind each rank to a core or a socket of its host, one after the other.", variables("BIND_TO"),
     choices("core|socket|none")},
    {&RunOptions::env, "env", "NAME[=VALUE]",
     "Set a variable for all ranks on every host; without a value, pass on the one of this shell.",
     aliases("-x")},
};

constexpr Option<RunOptions> kRunElastic[] = {
    {&RunOptions::min_np, "min-np", "N",
     "Continue after ranks are lost, as long as N are left. This option or "
     "--host-discovery-script makes the job elastic (docs/elastic-runs.md).",
     aliases("--min-num-proc"), fallback("the number of -np"), least(1), most(1'000'000)},
    {&RunOptions::max_np, "max-np", "N",
     "Start no more than N ranks, however many slots there are.", aliases("--max-num-proc"),
     fallback("no limit"), least(1), most(1'000'000)},
    {&RunOptions::discovery_script, "host-discovery-script", "COMMAND",
     "Ask this command for the hosts, once a second: it prints `HOST`, `HOST:N` or `HOST slots=N` "
     "on each line."},
    {&RunOptions::slots_per_host, "slots-per-host", "N",
     "Give N slots to each host for which the script prints no number.", fallback("1"), least(1),
     most(1'000'000)},
    {&RunOptions::reset_limit, "reset-limit", "N",
     "Let the group of ranks change N times, and end the job when a rank is lost after that.",
     fallback("no limit"), least(0), most(1'000'000'000)},
    {&RunOptions::cooldown_range, "blacklist-cooldown-range", "LOW,HIGH",
     "After a rank has failed on a host, start no ranks there for LOW seconds. Each further "
     "failure "
     "doubles this time, up to HIGH seconds.",
     fallback("the host is never used again")},
    {&RunOptions::elastic_timeout, "elastic-timeout", "SECONDS",
     "Wait up to this many seconds for hosts when fewer than --min-np ranks are left.",
     variables("ELASTIC_TIMEOUT"), least(0.001), most(1e9)},
    {&RunOptions::notice_signal, "notice-signal", "SIGNAL",
     "Let a rank that receives this signal finish its step and leave, as it does for TERM. SIGNAL "
     "is USR1, USR2 or a number.",
     fallback("TERM alone")},
    {&RunOptions::commit_dir, "commit-dir", "DIR",
     "Write commits of an elastic job to this directory: every hundredth, and the last one if kolo "
     "run dies.",
     fallback("commits are kept in memory only")},
    {&RunOptions::commit_every, "commit-every", "N",
     "Write every Nth commit instead of every hundredth.", fallback("100"), least(1),
     most(1'000'000'000)},
    {&RunOptions::resume, "resume", "DIR",
     "Continue from the newest commit in this directory, and write further commits to it.",
     fallback("start from the beginning")},
};

constexpr Option<RunOptions> kRunCommunication[] = {
    {&RunOptions::transport, "transport", "NAME",
     "Move bytes between ranks by this transport; `kolo list transports` shows the names.",
     variables("TRANSPORT"), keys("controller"), fallback("auto"), names(transport_names)},
    {&RunOptions::gloo, "gloo", "",
     "Use TCP between hosts, as `--transport tcp` does; the name is Horovod's."},
    {&RunOptions::mpi, "mpi", "",
     "Start the ranks with mpirun and use MPI, as `--transport mpi` does."},
    {&RunOptions::network_interface, "network-interface", "NAME",
     "Let the hosts meet and exchange data over this network interface, given by its name or "
     "address.",
     aliases("--network-interfaces"), variables("NETWORK_INTERFACE"),
     fallback("the one that reaches the other hosts")},
    {&RunOptions::start_timeout, "start-timeout", "SECONDS",
     "Give up if connecting to the hosts, or the first meeting of the ranks, takes longer.",
     variables("START_TIMEOUT"), least(0.001), most(1e9)},
};

constexpr Option<RunOptions> kRunEngine[] = {
    {&RunOptions::fusion_threshold_mb, "fusion-threshold-mb", "MB",
     "Fuse small operations up to this size, in MiB; 0 turns fusion off.",
     keys("params.fusion-threshold-mb"), fallback("KOLO_FUSION_THRESHOLD, else 16"), least(0),
     most(1 << 20)},
    {&RunOptions::timeline_filename, "timeline-filename", "FILE",
     "Write a Chrome trace of all ranks to this file.", variables("TIMELINE"),
     keys("timeline.filename")},
    {&RunOptions::timeline_mark_cycles, "timeline-mark-cycles", "",
     "Mark in the trace when operations begin.", variables("TIMELINE_MARK_CYCLES"),
     keys("timeline.mark-cycles")},
    {&RunOptions::autotune, "autotune", "",
     "Try other bucket sizes and switch points during the first steps, and keep the fastest.",
     variables("AUTOTUNE"), keys("autotune.enabled")},
    {&RunOptions::autotune_log_file, "autotune-log-file", "FILE",
     "Write what --autotune tried to this file, as CSV.", variables("AUTOTUNE_LOG"),
     keys("autotune.log-file")},
    {&RunOptions::no_stall_check, "no-stall-check", "",
     "Do not report ranks that keep others waiting.", variables("STALL_CHECK_DISABLE")},
    {&RunOptions::stall_warning, "stall-check-warning-time-seconds", "SECONDS",
     "Report a rank when others have waited for it for this many seconds.",
     variables("STALL_CHECK_TIME_SECONDS"), keys("stall-check.warning-time-seconds"),
     fallback("60"), least(0)},
    {&RunOptions::stall_shutdown, "stall-check-shutdown-time-seconds", "SECONDS",
     "Fail an operation that has waited for this many seconds; 0 waits without limit.",
     variables("STALL_SHUTDOWN_TIME_SECONDS"), keys("stall-check.shutdown-time-seconds"),
     fallback("KOLO_TIMEOUT_SECONDS, else 300"), least(0)},
};

constexpr Option<RunOptions> kRunSsh[] = {
    {&RunOptions::ssh_port, "ssh-port", "PORT", "Connect to the ssh servers at this port.",
     aliases("-p"), variables("SSH_PORT"), fallback("as ssh is configured"), least(1), most(65535)},
    {&RunOptions::ssh_identity_file, "ssh-identity-file", "FILE",
     "Log in with the private key in this file.", aliases("-i"), variables("SSH_IDENTITY_FILE"),
     fallback("as ssh is configured")},
    {&RunOptions::ssh, "ssh", "COMMAND",
     "Run this command in place of ssh. It is split at blanks; no shell reads it.",
     variables("SSH")},
    {&RunOptions::remote_kolo, "remote-kolo", "FILE",
     "Start kolo from this file on the other hosts.", variables("REMOTE_KOLO REMOTE_BINARY"),
     fallback("the path of this kolo")},
};

constexpr Option<RunOptions> kRunOutput[] = {
    {&RunOptions::output_filename, "output-filename", "DIRECTORY",
     "Write the output of each rank to DIRECTORY/rank.N/stdout and stderr as well.",
     variables("OUTPUT_FILENAME")},
    {&RunOptions::timestamps, "prefix-output-with-timestamp", "",
     "Print the time in front of each line of output.", aliases("-prefix-timestamp"),
     variables("PREFIX_OUTPUT_WITH_TIMESTAMP")},
    {&RunOptions::log_level, "log-level", "LEVEL",
     "Log messages of kolo itself from this level on: trace, debug, info, warning, error or fatal.",
     variables("LOG_LEVEL"), keys("logging.level"), fallback("warning"),
     choices("trace|debug|info|warning|error|fatal")},
    {&RunOptions::verbose, "verbose", "", "Print each step of starting and ending the ranks.",
     variables("VERBOSE")},
};

constexpr Option<RunOptions> kRunOther[] = {
    {&RunOptions::config_file, "config-file", "FILE",
     "Read options from a YAML file whose keys are the long names of options. Options on the "
     "command line and variables win over the file.",
     variables("CONFIG_FILE"), is_file},
    {&RunOptions::check_build, "check-build", "",
     "Print what this kolo can do, as `kolo info` does, and exit.", aliases("-cb"), stands_alone},
};

/// Sections of Horovod's files that mean nothing here.
constexpr std::string_view kHorovodSections[] = {"params",      "autotune",        "timeline",
                                                 "stall_check", "library_options", "logging"};

}  // namespace

void RunOptions::declare(cli::OptionSet& set) {
  set.add("Arguments", kRunProgram, *this);
  set.add("Ranks and hosts", kRunRanks, *this);
  set.add("Elastic jobs", kRunElastic, *this);
  set.add("Communication", kRunCommunication, *this);
  set.add("Operations", kRunEngine, *this);
  set.add("Other hosts", kRunSsh, *this);
  set.add("Output", kRunOutput, *this);
  set.add("Other options", kRunOther, *this);
  set.pass_over(kHorovodSections);
}

}  // namespace kolo::app
