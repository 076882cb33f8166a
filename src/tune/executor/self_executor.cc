// Trials that are this program, started again: with the same arguments, up to the same call of
// tune::run, which knows from the environment what it is there for.
#include "tune/executor/self_executor.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/mutex.h"
#include "kolo/kolo.h"
#include "launch/hosts.h"
#include "tune/executor/executors.h"
#include "tune/protocol/trial_client.h"
#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

constexpr const char* kRole = "KOLO_TRIAL_ROLE";  // trial or rank
constexpr const char* kCall = "KOLO_TRIAL_CALL";  // which call of tune::run it is for
constexpr const char* kPast = "KOLO_TRIAL_PAST";  // studies of the calls before, as JSON

/// Calls of tune::run in this process, and the studies they made.
struct Calls {
  Mutex mutex;
  std::int64_t count KOLO_GUARDED_BY(mutex) = 0;
  Value::List past KOLO_GUARDED_BY(mutex);
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

void check_hosts(const Ranks& ranks) {
  if (ranks.num_hosts == 1) return;
  if (static_cast<int>(ranks.hosts.size()) != ranks.num_hosts)
    throw_error(ErrorCode::invalid_argument, "num_hosts is {}, and {} hosts are named",
                ranks.num_hosts, ranks.hosts.size());
  if (std::set(ranks.hosts.begin(), ranks.hosts.end()).size() != ranks.hosts.size())
    throw_error(ErrorCode::invalid_argument,
                "a host is named twice; num_slots gives it more ranks");
  if (!launch::is_this_machine(ranks.hosts.front()))
    throw_error(ErrorCode::invalid_argument,
                "the first host must be this machine: rank 0 talks to the study here");
}

}  // namespace

void run_as_trial(const Runnable& trainable, const ClassPolicy& policy) {
  const pid_t process = ::getpid();
  std::string error;
  try {
    SessionBase& session = client_session();
    const Value config =
        decode(read_file(environment(kTrialConfig).value_or("")), "the trial's configuration");
    run_trainable(trainable, config, session, policy);
  } catch (const Stopped&) {
    // As it was told.
  } catch (const std::exception& failure) {
    error = failure.what();
  } catch (...) {
    error = "an exception of an unknown type";
  }
  // A process that the trial has forked says nothing in its name, and leaves its ring alone.
  if (::getpid() != process) {
    if (!error.empty()) fmt::print(stderr, "{}\n", error);
    leave(error.empty() ? 0 : 1);
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
  const MutexLock lock(all.mutex);
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
  const MutexLock lock(all.mutex);
  all.past.resize(static_cast<std::size_t>(all.count));
  all.past[static_cast<std::size_t>(number_)] = Value{{"storage", storage}, {"name", name}};
}

void run_if_trial(const Runnable& trainable, const ClassPolicy& policy) {
  if (environment(kRole)) run_as_trial(trainable, policy);
}

std::unique_ptr<TrialExecutor> make_self_executor(bool as_jobs, ExecutorSetup setup,
                                                  const SelfCall& call) {
  const auto ranks = setup.trainable->ranks();
  const bool names_hosts = ranks && !as_jobs && setup.shape.cluster.empty();
  if (names_hosts) check_hosts(*ranks);
  TrialCommand command;
  command.argv = own_command_line();
  std::string past;
  {
    auto& all = calls();
    const MutexLock lock(all.mutex);
    past = encode(Value(all.past));
  }
  if (ranks) {
    setup.shape.nodes = ranks->num_hosts;
    setup.shape.ranks_per_node = ranks->num_slots;
    if (ranks->num_hosts > 1 && names_hosts)
      for (const auto& host : ranks->hosts) setup.shape.hosts.push_back({host, ranks->num_slots});
    setup.shape.start_timeout =
        std::chrono::duration_cast<std::chrono::milliseconds>(ranks->timeout);
    command.environment = {fmt::format("KOLO_START_TIMEOUT={}", ranks->timeout.count())};
  }
  const bool has_ranks = ranks || setup.shape.most_ranks > 0;
  const char* const role = has_ranks ? "rank" : "trial";
  for (auto& entry : {fmt::format("{}={}", kRole, role), fmt::format("{}={}", kCall, call.number()),
                      fmt::format("{}={}", kPast, past)})
    command.environment.push_back(entry);
  setup.command = [command](const StartOrder&) { return command; };
  return make_executor(as_jobs ? "jobs" : has_ranks ? "ranks" : "process", std::move(setup));
}

}  // namespace kolo::tune
