// Trials that are this program, started again: with the same arguments, up to the same call of
// tune::run, which knows from the environment what it is there for.
#include "tune/executor/self_executor.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>

#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "kolo/kolo.h"
#include "launch/supervisor.h"
#include "tune/executor/executors.h"
#include "tune/protocol/trial_client.h"
#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

constexpr const char* kRole = "KOLO_TRIAL_ROLE";  // trial, coordinator or rank
constexpr const char* kCall = "KOLO_TRIAL_CALL";  // which call of tune::run it is for
constexpr const char* kPast = "KOLO_TRIAL_PAST";  // studies of the calls before, as JSON

/// Calls of tune::run in this process, and the studies they made.
struct Calls {
  std::mutex mutex;
  std::int64_t count = 0;
  Value::List past;
};
Calls& calls() {
  static Calls all;
  return all;
}

std::vector<std::string> own_command_line() {
  const std::string text = read_file("/proc/self/cmdline");
  std::vector<std::string> argv;
  for (std::size_t start = 0; start < text.size();) {
    const auto end = std::min(text.find('\0', start), text.size());
    argv.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  argv.at(0) = fs::read_symlink("/proc/self/exe").string();
  return argv;
}

[[noreturn]] void leave(int status) {
  std::fflush(nullptr);
  // Nothing of the program's own shall run now: not what follows the call, nor destructors of what
  // the study's own process still uses.
  std::_Exit(status);
}

/// Of a trial on several hosts: starts the ranks, ends them all when one is lost.
[[noreturn]] void be_coordinator(const Ranks& ranks) {
  launch::Job job;
  job.argv = own_command_line();
  job.directory = fs::current_path();
  job.environment = {std::string(kRole) + "=rank",
                     fmt::format("KOLO_START_TIMEOUT={}", ranks.timeout.count())};
  // This program is not `kolo`, whose agent the other hosts need.
  job.ssh = exec::ssh_from_environment("kolo");
  job.ssh.connect_timeout_seconds = std::max(1, static_cast<int>(ranks.timeout.count()));
  job.start_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(ranks.timeout);
  int first = 0;
  for (const auto& host : ranks.hosts) {
    launch::Placement placement{host, first, ranks.num_slots, launch::is_this_machine(host)};
    first += ranks.num_slots;
    job.placements.push_back(std::move(placement));
  }
  int status = 1;
  try {
    status = launch::run_job(job);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
  }
  leave(status);
}

void check_hosts(const Ranks& ranks) {
  if (ranks.num_hosts == 1) return;
  if (static_cast<int>(ranks.hosts.size()) != ranks.num_hosts)
    throw_error(ErrorCode::invalid_argument, "num_hosts is {}, and {} hosts are named",
                ranks.num_hosts, ranks.hosts.size());
  if (!launch::is_this_machine(ranks.hosts.front()))
    throw_error(ErrorCode::invalid_argument,
                "the first host must be this machine: rank 0 talks to the study here");
}

}  // namespace

void run_as_trial(const Runnable& trainable, const ClassPolicy& policy) {
  std::unique_ptr<SessionBase> session;
  std::string error;
  try {
    session = make_client_session();
    const Value config =
        decode(read_file(environment(kTrialConfig).value_or("")), "the trial's configuration");
    run_trainable(trainable, config, *session, policy);
  } catch (const Stopped&) {
    // As it was told.
  } catch (const std::exception& failure) {
    error = failure.what();
  } catch (...) {
    error = "an exception of an unknown type";
  }
  try {
    if (is_initialized()) shutdown();
    if (!error.empty() && setting_integer("RANK").value_or(0) == 0)
      TrialLink::from_environment(false).send(failure_line(error));
  } catch (const std::exception&) {
    // The exit status says it too.
  }
  if (!error.empty()) fmt::print(stderr, "{}\n", error);
  leave(error.empty() ? 0 : 1);
}

SelfCall::SelfCall() {
  auto& all = calls();
  const std::lock_guard lock(all.mutex);
  number_ = all.count++;
}

std::optional<std::pair<std::string, std::string>> SelfCall::past_study() const {
  if (!environment(kRole)) return std::nullopt;
  std::int64_t wanted = setting_integer("TRIAL_CALL").value_or(0);
  if (number_ >= wanted) return std::nullopt;
  const Value past = decode(environment(kPast).value_or("[]"), kPast);
  const auto& study = past.as_list().at(static_cast<std::size_t>(number_));
  return std::pair(study.at_path("storage").as_string(), study.at_path("name").as_string());
}

void SelfCall::remember(const std::string& storage, const std::string& name) const {
  auto& all = calls();
  const std::lock_guard lock(all.mutex);
  all.past.resize(static_cast<std::size_t>(all.count));
  all.past[static_cast<std::size_t>(number_)] = Value{{"storage", storage}, {"name", name}};
}

void run_if_trial(const Runnable& trainable, const ClassPolicy& policy) {
  const auto role = environment(kRole);
  if (!role) return;
  if (*role == "coordinator" && trainable.ranks()) be_coordinator(*trainable.ranks());
  run_as_trial(trainable, policy);
}

std::unique_ptr<TrialExecutor> make_self_executor(bool as_jobs, ExecutorSetup setup,
                                                  const SelfCall& call) {
  const auto& ranks = setup.trainable->ranks();
  if (ranks && !as_jobs) check_hosts(*ranks);
  TrialCommand command;
  command.argv = own_command_line();
  std::string past;
  {
    auto& all = calls();
    const std::lock_guard lock(all.mutex);
    past = encode(Value(all.past));
  }
  std::string role = "trial";
  if (ranks) {
    // On this machine the custodian of the study starts the ranks itself.
    role = ranks->num_hosts > 1 && !as_jobs ? "coordinator" : "rank";
    if (role == "rank") {
      setup.shape.nodes = ranks->num_hosts;
      setup.shape.ranks_per_node = ranks->num_slots;
    }
    command.environment = {fmt::format("KOLO_START_TIMEOUT={}", ranks->timeout.count())};
  }
  for (auto& entry : {fmt::format("{}={}", kRole, role), fmt::format("{}={}", kCall, call.number()),
                      fmt::format("{}={}", kPast, past)})
    command.environment.push_back(entry);
  setup.command = [command](const StartOrder&) { return command; };
  return make_executor(as_jobs ? "jobs" : role == "rank" ? "ranks" : "process", std::move(setup));
}

}  // namespace kolo::tune
