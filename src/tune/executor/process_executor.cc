// Orders come from the controller's thread, and one thread polls channels, custodians and report
// files. One mutex guards all state, but is not held during poll(). An order that leaves work to
// that thread wakes it through an eventfd. When a run has ended, its channels and its report file
// are read to the end before the end is told, so that no report comes after it. Answers go to the
// connections in the order in which these asked, since helpers of a trial report over their own. A
// run that cannot be started is told as one that has ended with an error. One for which there are
// no descriptors now waits until others have ended.
#include "tune/executor/process_executor.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <unordered_map>

#include "base/env.h"
#include "base/errors.h"
#include "base/mutex.h"
#include "launch/environment.h"
#include "tune/executor/program_run.h"
#include "tune/executor/trial_environment.h"
#include "tune/executor/trial_tasks.h"
#include "tune/output/trial_log.h"
#include "tune/protocol/report_file.h"
#include "tune/protocol/trial_channels.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

/// Between looks at the reports of trials on other hosts.
constexpr int kLookAtReportsMs = 500;
/// The same, where there are more than the study could take at once.
constexpr int kLookAgainMs = 20;
/// A trial that has lost its host so often may be the reason, and fails.
constexpr int kHostsToLose = 3;
/// What a run takes: its socket and the files of its log. Some more stay free for its helpers and
/// for the database: a trial whose helper is not heard would wait with its descriptors.
constexpr std::size_t kDescriptorsOfRun = 4, kSpareDescriptors = 16;
constexpr int kLookForDescriptorsMs = 200;

/// The lowest that is free; where none was closed before, that is how many there are.
std::size_t descriptors_in_use(const Fd& any) {
  const Fd lowest(::fcntl(any.get(), F_DUPFD_CLOEXEC, 0));
  return lowest.valid() ? static_cast<std::size_t>(lowest.get()) : 0;
}

bool has_descriptors(const Fd& any, std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && wanted + kSpareDescriptors > limit.rlim_cur)
    return false;
  std::vector<Fd> spare(kSpareDescriptors);
  return std::all_of(spare.begin(), spare.end(), [&any](Fd& one) {
    one = Fd(::fcntl(any.get(), F_DUPFD_CLOEXEC, 0));
    return one.valid();
  });
}

TrialHostsSetup hosts_setup(const ExecutorSetup& setup) {
  TrialHostsSetup hosts;
  hosts.study_directory = setup.place.directory;
  hosts.hosts = setup.shape.hosts;
  hosts.cluster = setup.shape.cluster;
  hosts.batch_system = setup.shape.batch_system;
  hosts.each_rank = setup.shape.each_rank;
  for (auto& host : hosts.hosts) host.slots /= std::max(1, setup.shape.threads_per_rank);
  hosts.start_timeout = setup.shape.start_timeout;
  hosts.ssh = exec::ssh_from_environment(setup.kolo);
  hosts.ssh.connect_timeout_seconds =
      static_cast<int>(std::max<std::int64_t>(1, hosts.start_timeout / std::chrono::seconds(1)));
  hosts.lease = exec::host_lease_setting();
  return hosts;
}

class ProcessExecutor final : public TrialExecutor {
 public:
  ProcessExecutor(ExecutorSetup setup, bool is_ring)
      : setup_(std::move(setup)),
        is_ring_(is_ring),
        start_directory_(setup_.directory.empty() ? fs::current_path() : setup_.directory),
        inbox_(setup_.place.inbox),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        tasks_(hosts_setup(setup_)),
        thread_([this] { listen(); }) {}

  ~ProcessExecutor() override {
    closing_ = true;
    wake();
    thread_.join();
  }

  void start(StartOrder order) override {
    const MutexLock lock(mutex_);
    runs_[order.id.trial] = Run{.program = {order.id}};
    postponed_.push_back(std::move(order));
    begin_postponed();
    is_elastic() || !postponed_.empty() ? wake() : wake_if_needed();
  }

  void answer(RunId id, Answer answer) override {
    const MutexLock lock(mutex_);
    Run* run = find(id);
    if (run == nullptr) return;
    if (!run->asking.empty()) {
      channels_.answer(run->asking.front(), answer_line(answer));
      run->asking.pop_front();
    }
    // Whoever does not listen would go on for nothing.
    if (answer.reply != Reply::proceed && !run->listens) end_tasks(*run);
  }

  void stop(RunId id) override {
    const MutexLock lock(mutex_);
    Run* run = find(id);
    if (run == nullptr) return;
    if (end_postponed(id)) return;
    channels_.send(run->channel, stop_line());
    if (!run->listens) end_tasks(*run);
  }

  void resize(RunId id, int ranks) override {
    const MutexLock lock(mutex_);
    if (find(id) == nullptr) return;
    tasks_.resize(id, ranks);
    wake();  // it may be done already
  }

  void kill(RunId id) override {
    const MutexLock lock(mutex_);
    Run* run = find(id);
    if (run == nullptr || end_postponed(id)) return;
    run->over ? tell_end(*run) : kill_tasks(id);
  }

  void forget(RunId id) override {
    const MutexLock lock(mutex_);
    if (find(id) != nullptr) runs_.erase(id.trial);
  }
  [[nodiscard]] bool can_kill() const noexcept override { return true; }

 private:
  struct Run {
    ProgramRun program{};
    ChannelId channel = 0;
    std::deque<ChannelId> asking{};       // who waits for answers, in order
    bool listens = false;                 // reads what the study says
    bool is_told_to_end = false;          // by SIGTERM, which then is no failure
    std::optional<ReportFile> reports{};  // of a trial on another host
    bool waits_for_study = false;         // there are more than it could take at once
    std::optional<RunEnd> over{};         // what it has reported is not read to the end
  };

  void begin(const StartOrder& order) KOLO_REQUIRES(mutex_) {
    Run& run = runs_[order.id.trial];
    RunProcess process{.id = order.id};
    try {
      TrialCommand command = setup_.command(order);
      write_params(order.directory, order.config);
      run.program.out = RunOutput(order.directory / "stdout");
      process.argv = std::move(command.argv);
      process.directory = start_directory_;
      process.out = run.program.out.path;
      process.err = order.directory / "stderr";
      process.is_ring = is_ring_;
      process.grace = setup_.place.grace;
      process.is_elastic = is_elastic();
      const auto& shape = setup_.shape;
      if (process.is_elastic)
        for (int i = 0; i < order.grant.ranks; ++i) tasks_.hosts().add_rank(process.placements);
      else
        process.placements =
            tasks_.hosts().take(is_ring_ ? shape.nodes : 1, is_ring_ ? shape.ranks_per_node : 1);
      if (process.is_elastic)
        connect_workers(order, run, process);
      else if (process.placements.front().is_local)
        connect(order, run, process);
      else
        report_by_file(order, run, process);
      process.environment.insert(process.environment.end(), command.environment.begin(),
                                 command.environment.end());
      tasks_.start(std::move(process));
    } catch (const std::exception& error) {
      tasks_.hosts().give_back(process.placements);  // none if tasks_ has them
      inbox_->put(run.program.end(error.what(), {}, setup_));
    }
  }

  /// If no other run could end, waiting would not help.
  void begin_postponed() KOLO_REQUIRES(mutex_) {
    while (!postponed_.empty()) {
      const std::size_t begun = runs_.size() - std::min(runs_.size(), postponed_.size());
      if (begun > 0 && !has_descriptors(wake_, descriptors_ + kDescriptorsOfRun * (begun + 1)))
        return;
      const StartOrder order = std::move(postponed_.front());
      postponed_.pop_front();
      begin(order);
    }
  }

  /// Whether the run had not begun; it never will then.
  bool end_postponed(RunId id) KOLO_REQUIRES(mutex_) {
    if (std::erase_if(postponed_, [id](const StartOrder& order) { return order.id == id; }) == 0)
      return false;
    inbox_->put({Message::Kind::ended, id});
    return true;
  }

  /// A trial here inherits one end of a socket.
  void connect(const StartOrder& order, Run& run, RunProcess& process) KOLO_REQUIRES(mutex_) {
    auto opened = channels_.open(order.id);
    run.channel = opened.channel;
    process.descriptor = std::move(opened.trial_end);
    process.descriptor_variable = kTrialFd;
    process.environment = trial_environment(order);
    process.environment.push_back(
        fmt::format("{}={}", kTrialSocket, channels_.socket_path().string()));
    process.environment.push_back(fmt::format("{}={}", kTrialToken, opened.token));
    if (auto devices = device_variable(order)) process.environment.push_back(*devices);
  }

  static fs::path open_report_file(const StartOrder& order, Run& run) {
    const fs::path file = order.directory / fmt::format("reports-{}.jsonl", order.id.run);
    fs::remove(file);  // of an earlier session
    run.reports.emplace(file);
    return file;
  }
  static void report_by_file(const StartOrder& order, Run& run, RunProcess& process) {
    process.environment = trial_environment(order, open_report_file(order, run));
  }

  [[nodiscard]] bool is_elastic() const noexcept { return setup_.shape.most_ranks > 0; }

  /// Any worker may become the rank that reports. Those here connect to a socket.
  void connect_workers(const StartOrder& order, Run& run, RunProcess& process)
      KOLO_REQUIRES(mutex_) {
    auto opened = channels_.open(order.id);
    run.channel = opened.channel;
    process.environment = trial_environment(order);
    process.here = {fmt::format("{}={}", kTrialSocket, channels_.socket_path().string()),
                    fmt::format("{}={}", kTrialToken, opened.token)};
    if (!setup_.shape.hosts.empty())
      process.elsewhere = {
          fmt::format("{}={}", kTrialReports, open_report_file(order, run).string())};
    // All numbers of ranks shall give the same bits.
    if (const int count = setup_.shape.virtual_ranks; count > 0) {
      const auto variables = launch::virtual_rank_variables(count);
      process.environment.insert(process.environment.end(), variables.begin(), variables.end());
    }
  }

  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
  }
  void end_tasks(Run& run) KOLO_REQUIRES(mutex_) {
    if (run.over) return tell_end(run);
    run.is_told_to_end = true;
    tasks_.stop(run.program.id);
    wake_if_needed();
  }
  void kill_tasks(RunId id) KOLO_REQUIRES(mutex_) {
    tasks_.kill(id);
    wake_if_needed();
  }
  /// What could not be done at once is done by the listening thread.
  void wake_if_needed() KOLO_REQUIRES(mutex_) {
    if (tasks_.needs_poll()) wake();
  }

  Run* find(RunId id) KOLO_REQUIRES(mutex_) {
    const auto found = runs_.find(id.trial);
    return found != runs_.end() && found->second.program.id == id ? &found->second : nullptr;
  }

  /// The thread that hears trials and their custodians.
  void listen() {
    std::vector<pollfd> polls;
    while (!closing_) {
      polls.assign({{wake_.get(), POLLIN, 0}});
      int timeout = -1;
      {
        const MutexLock lock(mutex_);
        polls.push_back({channels_.poll_fd(), POLLIN, 0});
        tasks_.add_polls(polls);
        timeout = poll_timeout_ms();
      }
      const int ready = ::poll(polls.data(), polls.size(), timeout);
      if (ready < 0) continue;
      const MutexLock lock(mutex_);
      std::uint64_t woken = 0;
      [[maybe_unused]] const auto got = ::read(wake_.get(), &woken, sizeof woken);
      try {
        if (polls[1].revents != 0) channels_.read_ready(take_, refuse_);
        if (timeout >= 0)
          for (auto& [trial, run] : runs_) look_at_reports(run);
        if (woken > 0 || ready == 0 ||
            std::any_of(polls.begin() + 2, polls.end(), [](auto& one) { return one.revents != 0; }))
          hear_ends();
        begin_postponed();
      } catch (const std::exception& error) {
        fail_all(error.what());
      }
    }
  }

  [[nodiscard]] int poll_timeout_ms() KOLO_REQUIRES(mutex_) {
    int timeout = tasks_.poll_timeout_ms();
    if (!postponed_.empty())
      timeout = timeout < 0 ? kLookForDescriptorsMs : std::min(timeout, kLookForDescriptorsMs);
    if (setup_.shape.hosts.empty()) return timeout;
    for (const auto& [trial, run] : runs_) {
      if (!run.reports) continue;
      const int look = run.waits_for_study ? kLookAgainMs : kLookAtReportsMs;
      timeout = timeout < 0 ? look : std::min(timeout, look);
    }
    return timeout;
  }

  /// Something has failed that concerns all: no descriptor, no memory. The runs fail, and the study
  /// goes on.
  void fail_all(const std::string& error) KOLO_REQUIRES(mutex_) {
    postponed_.clear();
    for (const auto& [trial, run] : runs_) {
      tasks_.kill(run.program.id);
      inbox_->put(run.program.end(error, {}, setup_));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }

  void look_at_reports(Run& run) KOLO_REQUIRES(mutex_) {
    read_reports(run);
    if (run.over && !run.waits_for_study) tell_end(run);
  }

  void read_reports(Run& run) KOLO_REQUIRES(mutex_) {
    run.waits_for_study = false;
    if (!run.reports) return;
    try {
      const auto before = run.program.last_put;
      const auto rest = run.program.hear(*run.reports, /*has_ended=*/run.over.has_value(), *inbox_);
      if (run.program.last_put != before) run.listens = false;
      run.waits_for_study = rest == ReportFile::Rest::more;
      if (rest == ReportFile::Rest::too_much && !run.over) kill_tasks(run.program.id);
    } catch (const std::exception& error) {  // whatever it is, only this trial is to blame
      refuse(run.program.id, error.what());
    }
  }

  void take(ChannelId channel, RunId id, TrialLine line) KOLO_REQUIRES(mutex_) {
    Run* run = find(id);
    if (run == nullptr) return;
    if (!tasks_.is_in_group(id)) {
      run->program.failure =
          "it reports before it is in a group: its number of ranks may change, so its program must "
          "report inside of kolo::elastic::run() or an elastic Trainer; or give a fixed number of "
          "ranks";
      kill_tasks(id);
      return;
    }
    if (is_elastic() && !line.is_plain) run->channel = channel;  // who reports may change
    if (!line.is_plain && channel == run->channel) run->listens = true;
    auto message = run->program.take(std::move(line));
    if (!message) return;
    run->asking.push_back(channel);
    inbox_->put(std::move(*message));
  }

  void refuse(RunId id, const std::string& why) KOLO_REQUIRES(mutex_) {
    Run* run = find(id);
    if (run == nullptr) return;
    run->program.refuse(why);
    kill_tasks(id);
  }

  /// Of a run that is over, when it was heard to the end or nobody waits for the rest.
  void tell_end(Run& run) KOLO_REQUIRES(mutex_) {
    RunEnd end = *std::exchange(run.over, std::nullopt);
    run.reports.reset();
    const bool as_told = run.is_told_to_end && end.was_terminated;
    Message message =
        run.program.end(as_told ? std::string() : std::move(end.error), end.said, setup_);
    message.was_terminated = end.was_terminated && !as_told;
    message.was_cut_off = end.was_cut_off && ++hosts_lost_[end.id.trial] < kHostsToLose;
    inbox_->put(std::move(message));
  }

  /// More trials fit when a cluster has got more hosts.
  void tell_room() KOLO_REQUIRES(mutex_) {
    const auto& shape = setup_.shape;
    if (!shape.follows_cluster) return;
    const int room = tasks_.hosts().trials_at_once(shape.nodes, shape.ranks_per_node);
    if (room <= most_at_once_) return;
    most_at_once_ = room;
    inbox_->put({.kind = Message::Kind::room, .id = {}, .trials_at_once = room});
  }

  void hear_ends() KOLO_REQUIRES(mutex_) {
    auto ends = tasks_.receive();
    for (const RunId id : tasks_.take_shrunk())
      if (find(id) != nullptr) inbox_->put({Message::Kind::shrunk, id});
    for (auto& end : ends) {
      channels_.close(end.id, take_, refuse_);
      Run* run = find(end.id);
      if (run == nullptr) continue;
      run->over = std::move(end);
      look_at_reports(*run);
    }
    tell_room();
  }

  const ExecutorSetup setup_;
  const bool is_ring_;
  const fs::path start_directory_;
  std::shared_ptr<Inbox> inbox_;
  Fd wake_;
  std::atomic<bool> closing_{false};
  Mutex mutex_;
  TrialTasks tasks_ KOLO_GUARDED_BY(mutex_);
  TrialChannels channels_ KOLO_GUARDED_BY(mutex_);
  std::unordered_map<std::int64_t, Run> runs_ KOLO_GUARDED_BY(mutex_);
  std::deque<StartOrder> postponed_ KOLO_GUARDED_BY(mutex_);  // until there are descriptors
  std::unordered_map<std::int64_t, int> hosts_lost_ KOLO_GUARDED_BY(mutex_);  // of trials
  int most_at_once_ KOLO_GUARDED_BY(mutex_) = trials_at_once(setup_.shape);   // as was told
  const std::size_t descriptors_ = descriptors_in_use(wake_);                 // without runs
  const TrialChannels::Take take_ =
      [this](ChannelId channel, RunId id, TrialLine line)
          KOLO_REQUIRES(mutex_) { take(channel, id, std::move(line)); };
  const TrialChannels::Refuse refuse_ = [this](RunId id, const std::string& why)
                                            KOLO_REQUIRES(mutex_) { refuse(id, why); };
  std::thread thread_;
};

}  // namespace

std::unique_ptr<TrialExecutor> make_process_executor(ExecutorSetup setup, bool is_ring) {
  return std::make_unique<ProcessExecutor>(std::move(setup), is_ring);
}

}  // namespace kolo::tune
