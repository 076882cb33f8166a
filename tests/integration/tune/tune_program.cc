// A study whose trials are this program: tune_program DIRECTORY STUDY MODE [SAMPLES].
//
// Modes: plain, crash (every third trial kills itself), ranks (2 ranks that add up), lostrank
// (rank 1 kills itself in the first run), orphan (leaves a process behind), heir (so too, and kills
// itself in the first run; the second fails if it meets that process), stop (never ends by itself),
// endless (so too, and is not told to), slow, slowranks, hosts (2 ranks on each of those in
// TUNE_PROGRAM_HOSTS, with commas), elastic (1 to 2 ranks), threads (two of them report), forks (a
// copy of the trial fails), copies (the trial and a copy of it report).
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <thread>

#include "base/files.h"
#include "kolo/elastic.h"
#include "kolo/kolo.h"
#include "kolo/tune.h"

namespace {

using namespace kolo;
using tune::Config;
using tune::Session;

std::string mode;

bool is_ring() {
  return mode == "ranks" || mode == "lostrank" || mode == "slowranks" || mode == "hosts";
}
bool is_slow() { return mode == "slow" || mode == "slowranks"; }

int epoch_of(Session& session) {
  const auto checkpoint = session.checkpoint();
  return checkpoint ? std::stoi(read_file(*checkpoint / "epoch")) : 0;
}

void save(Session& session, int epoch) {
  session.save_checkpoint([&](const std::filesystem::path& directory) {
    write_file_atomically(directory / "epoch", std::to_string(epoch));
  });
}

pid_t leave_a_process() {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::setsid();
  for (;;) ::pause();
}

void leave_an_heir(const std::filesystem::path& directory) {
  const auto file = directory / "heir";
  if (!std::filesystem::exists(file)) {
    write_file_atomically(file, std::to_string(leave_a_process()));
    ::raise(SIGKILL);
  }
  if (::kill(std::stoi(read_file(file)), 0) == 0) throw std::runtime_error("the heir is alive");
}

/// One by the session that it was given, the other by that of the program.
void report_from_two_threads(Session& session) {
  std::thread other([] {
    for (int i = 0; i < 200; ++i) tune::report({{"loss", 1}});
  });
  for (int i = 0; i < 200; ++i) {
    session.report({{"loss", 2}});
    if (session.should_stop()) throw std::runtime_error("nobody has told it to stop");
  }
  other.join();
  if (session.iteration() != 400) throw std::runtime_error("a report was not counted");
}

void fail_in_a_copy(Session& session) {
  const pid_t child = ::fork();
  if (child == 0) throw std::runtime_error("the copy fails");
  int status = 0;
  ::waitpid(child, &status, 0);
  session.report({{"loss", WEXITSTATUS(status)}});
}

void report_with_a_copy(Session& session) {
  const pid_t child = ::fork();
  for (int i = 0; i < 200; ++i) session.report({{"loss", 1}});
  if (child == 0) ::_exit(0);
  int status = 1;
  ::waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("the copy could not report");
}

void train(const Config& config, Session& session) {
  const double x = config.at_path("x").as_number();
  if (mode == "threads") return report_from_two_threads(session);
  if (mode == "forks") return fail_in_a_copy(session);
  if (mode == "copies") return report_with_a_copy(session);
  const bool ring = is_ring();
  if (ring) kolo::init();
  if (mode == "orphan") leave_a_process();
  if (mode == "heir") leave_an_heir(session.trial_dir());
  const int last = mode == "stop" || mode == "endless" ? 1'000'000 : 4;
  for (int epoch = epoch_of(session) + 1; epoch <= last; ++epoch) {
    if (mode == "crash" && config.at_path("n").as_integer() % 3 == 0) {
      ::signal(SIGSEGV, SIG_DFL);  // sanitizers have a handler of their own
      ::raise(SIGSEGV);
    }
    if (is_slow()) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    float sum = 1;
    if (ring) {
      if (mode == "lostrank" && kolo::rank() == 1 && epoch == 3 && session.iteration() == 2 &&
          !std::filesystem::exists(session.trial_dir() / "was_lost")) {
        write_file_atomically(session.trial_dir() / "was_lost", "");
        ::raise(SIGKILL);
      }
      kolo::world().allreduce(std::span<float>(&sum, 1), ReduceOp::sum);
    }
    save(session, epoch);
    session.report({{"loss", x / epoch},
                    {"epoch", epoch},
                    {"sum", static_cast<double>(sum)},
                    {"pid", static_cast<std::int64_t>(::getpid())}});
  }
}

void train_elastically(const Config& config, Session& session) {
  std::int64_t epoch = epoch_of(session);
  elastic::State state;
  state.add(epoch);
  elastic::run(state, [&](elastic::State&) {
    while (epoch < 4) {
      const auto sum = kolo::world().allreduce(std::int64_t{1}, ReduceOp::sum);
      ++epoch;
      save(session, static_cast<int>(epoch));
      session.report({{"loss", config.at_path("x").as_number()}, {"epoch", epoch}, {"sum", sum}});
      state.commit();
    }
  });
}

std::vector<std::string> hosts_to_use() {
  std::vector<std::string> hosts;
  std::istringstream list(std::getenv("TUNE_PROGRAM_HOSTS"));
  for (std::string host; std::getline(list, host, ',');) hosts.push_back(host);
  return hosts;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  mode = argv[3];
  tune::Options options;
  options.local_dir = argv[1];
  options.name = argv[2];
  options.metric = "loss";
  options.mode = "min";
  options.config = {{"x", tune::uniform(1, 2)}, {"n", tune::randint(0, 100)}};
  options.num_samples = argc > 4 ? std::atoi(argv[4]) : 6;
  options.executor = tune::Executor::process;
  options.resume = tune::Resume::automatic;
  options.raise_on_failed_trial = false;
  options.max_failures = mode == "lostrank" || mode == "heir" ? 1 : is_slow() ? -1 : 0;
  options.verbose = 0;
  options.seed = 5;
  options.total_resources = tune::Resources{.cpu = 2};
  if (mode == "stop") options.scheduler = tune::ASHAScheduler({{"max_t", 5}});
  try {
    tune::Runnable runnable(train);
    if (is_ring()) {
      options.executor = tune::Executor::ranks;
      tune::Ranks ranks{.num_slots = 2};
      if (mode == "hosts") {
        ranks.hosts = hosts_to_use();
        ranks.num_hosts = static_cast<int>(ranks.hosts.size());
        ranks.cpus_per_slot = 0.5;
      }
      runnable = tune::DistributedTrainable(runnable, ranks);
    }
    if (mode == "elastic") {
      options.executor = tune::Executor::automatic;
      options.resources_per_trial = {.ranks = {1, 2}};
      runnable = tune::Runnable(train_elastically);
    }
    const auto analysis = tune::run(runnable, options);
    fmt::print("{} trials, {} errors\n", analysis.trials().size(), analysis.errors().size());
  } catch (const kolo::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
