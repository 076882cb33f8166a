// Each rank calls the session, but only rank 0 talks to the study: it sends the report, waits for
// the answer and broadcasts it, so that all ranks stop at the same report. A worker of an elastic
// trial connects when it first reports as rank 0, because any worker may become it. The count of
// its reports is kept with the state of the step: a step that is repeated sends the same number,
// and the study recognizes the report. Lines that come while an answer is awaited are all parsed,
// since a stop may precede the answer. A connection that is closed counts as a stop where nobody
// waits, and as an error where an answer is due.
//
// A process that the trial has forked gets a connection of its own with its first report.
//
// All threads of a trial share one session. One of them talks to the study at a time, because an
// answer must not be read by another thread than the one that asked. What only looks at the session
// does not wait for the one who talks, whose answer may take long.
#include "tune/protocol/trial_client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <limits>

#include "base/env.h"
#include "base/errors.h"
#include "base/mutex.h"
#include "comm/elastic/told.h"
#include "kolo/kolo.h"
#include "tune/trial/checkpoints.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

std::int64_t integer_variable(const char* name) {
  const std::string text = environment(name).value_or("0");
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Fd connect_to(const std::string& path) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (!socket.valid() ||
      ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw_error(ErrorCode::unavailable, "the study does not answer at {}: {}", path,
                std::strerror(errno));
  return socket;
}

/// True as long as this lives.
class Raised {
 public:
  explicit Raised(std::atomic<bool>& flag) : flag_(flag) { flag_ = true; }
  ~Raised() { flag_ = false; }
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

 private:
  std::atomic<bool>& flag_;
};

/// A trial of one process, or a rank of a trial. Rank 0 talks to the study and tells the others
/// what it was told. In an elastic trial any worker may become rank 0, and a report may be made
/// again, together with its step. So reports have numbers there.
class ClientSession final : public SessionBase {
 public:
  ClientSession()
      : is_worker_(environment("KOLO_WORKER").has_value()),
        is_first_(!is_worker_ && integer_variable("KOLO_RANK") == 0) {
    if (is_first_) {
      link_.emplace(TrialLink::from_environment(/*own_connection=*/false));
      link_->send(hello_line("", false));
    }
    if (auto path = environment(kTrialCheckpoint)) checkpoint_ = *path;
    iteration_ = integer_variable(kTrialIteration);
    id_ = environment(kTrialId).value_or("");
    name_ = environment(kTrialName).value_or("");
    directory_ = environment(kTrialDir).value_or("");
  }

  bool try_report(const Value& metrics) override {
    check_metrics(metrics);
    const MutexLock lock(mutex_);
    const Raised talks(is_talking_);
    if (is_over()) throw Stopped{};
    if (is_worker_ && !is_initialized())
      throw_error(ErrorCode::failed_precondition,
                  "the number of ranks of this trial may change, so it reports inside of "
                  "kolo::elastic::run()");
    Answer answer = last_;
    if (is_speaker()) {
      std::optional<std::int64_t> number;
      if (is_worker_) number = iteration() + 1;
      link().send(report_line(metrics, take_staged(), number));
      answer = link().wait_for_answer();
    }
    share(answer);
    last_ = answer;
    if (is_worker_)
      ++comm::elastic::told_count();
    else
      ++iteration_;
    if (answer.reply != Reply::proceed) over_at_ = iteration();
    return answer.reply == Reply::proceed;
  }

  void report_last(const Value& metrics) override {
    check_metrics(metrics);
    const MutexLock lock(mutex_);
    if (is_over()) throw Stopped{};
    if (is_speaker()) link().send(result_line(metrics, take_staged()));
  }

  // `write` is the trial's own, and may ask the session: no lock is held.
  void save_checkpoint(const std::function<void(const fs::path&)>& write) override {
    if (!is_speaker()) {
      write_and_discard(directory_, write);
      return;
    }
    fs::path made = make_checkpoint(directory_, iteration() + 1, write);
    const MutexLock lock(staging_);
    staged_ = std::move(made);
  }
  void save_now(const std::function<void(const fs::path&)>& write) override {
    if (!is_speaker()) {
      save_checkpoint(write);
      return;
    }
    const std::string line = checkpoint_line(make_checkpoint(directory_, iteration(), write));
    const MutexLock lock(mutex_);
    const Raised talks(is_talking_);
    link().send(line);
    static_cast<void>(link().wait_for_answer());
  }
  void offer_saves() override {
    const MutexLock lock(mutex_);
    offers_saves_ = true;
    if (link_) link_->send(hello_line("", true));
  }

  [[nodiscard]] bool should_stop() const override {
    if (is_over()) return true;
    // Who talks reads what comes, and is told to stop by the answer.
    if (is_talking_) return false;
    const MutexLock lock(mutex_);
    return is_speaker() && link().told_to_stop();
  }
  [[nodiscard]] bool should_save() const override { return last_.load().save; }
  [[nodiscard]] bool pausing() const override { return last_.load().reply == Reply::pause; }
  [[nodiscard]] std::optional<fs::path> checkpoint() const override { return checkpoint_; }
  [[nodiscard]] std::int64_t iteration() const override {
    return iteration_ + (is_worker_ ? comm::elastic::told_count() : 0);
  }
  [[nodiscard]] const std::string& trial_id() const override { return id_; }
  [[nodiscard]] const std::string& trial_name() const override { return name_; }
  [[nodiscard]] const fs::path& trial_dir() const override { return directory_; }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// Every rank of a trial reports; all get rank 0's answer, so that they end together.
  static void share(Answer& answer) {
    if (!is_initialized() || size() == 1) return;
    std::array<std::int32_t, 2> both{static_cast<std::int32_t>(answer.reply), answer.save ? 1 : 0};
    world().broadcast(std::span<std::int32_t>(both), 0);
    answer.reply = static_cast<Reply>(both[0]);
    answer.save = both[1] != 0;
  }

  /// It was told to end. In an elastic trial, ranks that have lost one before the end of that step
  /// take it again, and ask again, as the one that has come in its place does.
  [[nodiscard]] bool is_over() const { return iteration() >= over_at_; }

  /// False for ranks that do not talk to the study.
  [[nodiscard]] bool is_speaker() const {
    return is_worker_ ? is_initialized() && rank() == 0 : is_first_;
  }

  /// That of the rank that is the speaker.
  TrialLink& link() const KOLO_REQUIRES(mutex_) {
    // A forked process would read answers that the other one waits for.
    if (!link_ || ::getpid() != process_) {
      link_.emplace(TrialLink::from_environment(/*own_connection=*/true));
      link_->send(hello_line("", offers_saves_));
      process_ = ::getpid();
    }
    return *link_;
  }

  fs::path take_staged() {
    const MutexLock lock(staging_);
    return std::exchange(staged_, {});
  }

  const bool is_worker_;  // of an elastic trial
  const bool is_first_;   // rank 0 of another one
  mutable Mutex mutex_;   // of who talks to the study
  mutable std::optional<TrialLink> link_ KOLO_GUARDED_BY(mutex_);
  mutable pid_t process_ KOLO_GUARDED_BY(mutex_) = ::getpid();  // whose it is
  bool offers_saves_ KOLO_GUARDED_BY(mutex_) = false;
  std::atomic<bool> is_talking_{false};
  Mutex staging_;
  fs::path staged_ KOLO_GUARDED_BY(staging_);
  std::optional<fs::path> checkpoint_;
  std::atomic<std::int64_t> iteration_{0};  // of a worker: when its trial began
  std::string id_, name_;
  fs::path directory_;
  std::atomic<Answer> last_{Answer{}};
  std::atomic<std::int64_t> over_at_{kNever};  // the iteration
};

}  // namespace

TrialLink TrialLink::from_environment(bool own_connection) {
  if (const auto file = environment(kTrialReports); file && !file->empty()) {
    Fd fd(::open(file->c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
    if (!fd.valid()) throw_errno("cannot open {}, the file for reports of this trial", *file);
    return TrialLink(std::move(fd), /*is_file=*/true);
  }
  const auto path = environment(kTrialSocket), token = environment(kTrialToken);
  if (own_connection && path && token) {
    TrialLink link(connect_to(*path));
    link.send(hello_line(*token, false));
    return link;
  }
  const auto fd = inherited_trial_fd();
  if (!fd)
    throw_error(ErrorCode::failed_precondition,
                "this process is not a trial of a study, because {} names no open descriptor",
                kTrialFd);
  return TrialLink(Fd(::dup(*fd)));
}

std::optional<int> inherited_trial_fd() {
  const auto fd = static_cast<int>(integer_variable(kTrialFd));
  if (fd <= STDERR_FILENO || ::fcntl(fd, F_GETFD) < 0) return std::nullopt;
  return fd;
}

void TrialLink::send(std::string_view line) {
  while (!line.empty()) {
    const ssize_t sent = is_file_ ? ::write(socket_.get(), line.data(), line.size())
                                  : ::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0)
      throw_error(ErrorCode::unavailable, "the connection to the study is lost: {}",
                  std::strerror(errno));
    line.remove_prefix(static_cast<std::size_t>(sent));
  }
}

Answer TrialLink::wait_for_answer() {
  if (is_file_) return {};
  while (!answer_) read(/*wait=*/true);
  const Answer answer = *answer_;
  answer_.reset();
  return answer;
}

bool TrialLink::told_to_stop() {
  if (is_file_) return false;
  while (read(/*wait=*/false)) {
  }
  return stop_;
}

bool TrialLink::read(bool wait) {
  std::array<char, 4096> buffer{};
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), wait ? 0 : MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (got <= 0) {
    if (!wait) {
      stop_ = true;
      return false;
    }
    throw_error(ErrorCode::unavailable, "the connection to the study is lost");
  }
  partial_.append(buffer.data(), static_cast<std::size_t>(got));
  std::size_t start = 0;
  for (auto end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n', start)) {
    take(std::string_view(partial_).substr(start, end - start));
    start = end + 1;
  }
  partial_.erase(0, start);
  return true;
}

void TrialLink::take(std::string_view text) {
  const StudyLine line = parse_study_line(text);
  if (line.answer)
    answer_ = line.answer;
  else
    stop_ = true;
}

SessionBase& client_session() {
  static ClientSession session;
  return session;
}

}  // namespace kolo::tune
