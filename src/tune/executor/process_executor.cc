#include "tune/executor/process_executor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <thread>
#include <unordered_map>

#include "base/errors.h"
#include "tune/executor/program_run.h"
#include "tune/executor/trial_environment.h"
#include "tune/executor/trial_tasks.h"
#include "tune/output/trial_log.h"
#include "tune/protocol/trial_channels.h"

namespace kolo::tune {
namespace {

class ProcessExecutor final : public TrialExecutor {
 public:
  ProcessExecutor(ExecutorSetup setup, int ranks)
      : setup_(std::move(setup)),
        ranks_(ranks),
        inbox_(setup_.place.inbox),
        tasks_(setup_.place.directory),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this] { listen(); }) {}

  ~ProcessExecutor() override {
    closing_ = true;
    wake();
    thread_.join();
  }

  void start(StartOrder order) override {
    const std::lock_guard lock(mutex_);
    const RunId id = order.id;
    auto& run = runs_[id.trial] = Run{.program = {id}};
    try {
      TrialCommand command = setup_.command(order);
      auto opened = channels_.open(id);
      RunProcess process;
      process.id = id;
      process.argv = std::move(command.argv);
      process.directory = setup_.directory;
      run.program.out = RunOutput(order.directory / "stdout");
      process.out = run.program.out.path;
      process.err = order.directory / "stderr";
      process.descriptor = opened.trial_end.get();
      process.descriptor_variable = kTrialFd;
      process.environment = trial_environment(order);
      process.environment.push_back(fmt::format("{}={}", kTrialSocket, socket_path_));
      process.environment.push_back(fmt::format("{}={}", kTrialToken, opened.token));
      if (auto devices = device_variable(order)) process.environment.push_back(*devices);
      process.environment.insert(process.environment.end(), command.environment.begin(),
                                 command.environment.end());
      process.ranks = ranks_;
      process.grace = setup_.place.grace;
      run.channel = opened.channel;
      write_params(order.directory, order.config);
      tasks_.start(process);
      wake_if_unsent();
    } catch (const std::exception& error) {
      inbox_->put(run.program.end(error.what(), {}, setup_));
    }
  }

  void answer(RunId id, Answer answer) override {
    const std::lock_guard lock(mutex_);
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
    const std::lock_guard lock(mutex_);
    Run* run = find(id);
    if (run == nullptr) return;
    channels_.send(run->channel, stop_line());
    if (!run->listens) end_tasks(*run);
  }

  void kill(RunId id) override {
    const std::lock_guard lock(mutex_);
    if (find(id) != nullptr) kill_tasks(id);
  }

  void forget(RunId id) override {
    const std::lock_guard lock(mutex_);
    if (find(id) != nullptr) runs_.erase(id.trial);
  }
  [[nodiscard]] bool can_kill() const noexcept override { return true; }

 private:
  struct Run {
    ProgramRun program{};
    ChannelId channel = 0;
    std::deque<ChannelId> asking{};  // who waits for answers, in order
    bool listens = false;            // reads what the study says
    bool is_told_to_end = false;     // by SIGTERM, which then is no failure
  };

  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
  }
  /// What could not be sent at once is sent by the listening thread.
  void wake_if_unsent() {
    if (tasks_.write_fd() >= 0) wake();
  }
  void end_tasks(Run& run) {
    run.is_told_to_end = true;
    tasks_.stop(run.program.id);
    wake_if_unsent();
  }
  void kill_tasks(RunId id) {
    tasks_.kill(id);
    wake_if_unsent();
  }

  Run* find(RunId id) {
    const auto found = runs_.find(id.trial);
    return found != runs_.end() && found->second.program.id == id ? &found->second : nullptr;
  }

  /// The thread that hears trials and their custodian.
  void listen() {
    while (!closing_) {
      pollfd events[4] = {{wake_.get(), POLLIN, 0}, {channels_.poll_fd(), POLLIN, 0}};
      {
        const std::lock_guard lock(mutex_);
        events[2] = {tasks_.read_fd(), POLLIN, 0};
        events[3] = {tasks_.write_fd(), POLLOUT, 0};
      }
      if (::poll(events, 4, -1) < 0) continue;
      const std::lock_guard lock(mutex_);
      std::uint64_t drained = 0;
      [[maybe_unused]] const auto got = ::read(wake_.get(), &drained, sizeof drained);
      try {
        if (events[3].revents != 0) tasks_.flush();
        if (events[1].revents != 0) channels_.read_ready(take_, refuse_);
        if (events[2].revents != 0) hear_ends();
      } catch (const std::exception& error) {
        fail_all(error.what());
      }
    }
  }

  /// The custodian is lost and there cannot be another one now: no process, no descriptor, no
  /// memory. The runs fail, the study goes on, and the next look at the link tries again.
  void fail_all(const std::string& error) {
    for (const auto& [trial, run] : runs_) inbox_->put(run.program.end(error, {}, setup_));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }

  void take(ChannelId channel, RunId id, TrialLine line) {
    Run* run = find(id);
    if (run == nullptr) return;
    if (!line.is_plain && channel == run->channel) run->listens = true;
    auto message = run->program.take(std::move(line));
    if (!message) return;
    run->asking.push_back(channel);
    inbox_->put(std::move(*message));
  }

  void refuse(RunId id, const std::string& why) {
    Run* run = find(id);
    if (run == nullptr) return;
    run->program.refuse(why);
    kill_tasks(id);
  }

  void hear_ends() {
    for (auto& end : tasks_.receive()) {
      channels_.close(end.id, take_, refuse_);
      const Run* run = find(end.id);
      if (run == nullptr) continue;
      const bool as_told = run->is_told_to_end && end.was_terminated;
      Message message =
          run->program.end(as_told ? std::string() : std::move(end.error), end.said, setup_);
      message.was_terminated = end.was_terminated && !as_told;
      inbox_->put(std::move(message));
    }
  }

  const ExecutorSetup setup_;
  const int ranks_;
  std::shared_ptr<Inbox> inbox_;
  TrialTasks tasks_;
  std::mutex mutex_;
  TrialChannels channels_;
  const std::string socket_path_ = channels_.socket_path().string();
  std::unordered_map<std::int64_t, Run> runs_;
  const TrialChannels::Take take_ = [this](ChannelId channel, RunId id, TrialLine line) {
    take(channel, id, std::move(line));
  };
  const TrialChannels::Refuse refuse_ = [this](RunId id, const std::string& why) {
    refuse(id, why);
  };
  Fd wake_;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace

std::unique_ptr<TrialExecutor> make_process_executor(ExecutorSetup setup, int ranks) {
  return std::make_unique<ProcessExecutor>(std::move(setup), ranks);
}

}  // namespace kolo::tune
