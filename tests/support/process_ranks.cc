#include "support/process_ranks.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <stdexcept>

#include "base/errors.h"

namespace kolo::test {

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// --- in the child --------------------------------------------------------------------------------

ProcessRank::ProcessRank(int rank, std::vector<int> host_of_rank, int control_fd, int news_fd)
    : rank_(rank),
      host_of_rank_(std::move(host_of_rank)),
      control_fd_(control_fd),
      news_fd_(news_fd) {}

ContextOptions ProcessRank::options(std::chrono::milliseconds timeout, std::string transport) {
  ContextOptions options;
  options.bootstrap = make_relay_bootstrap(rank_, host_of_rank_, control_fd_, news_fd_);
  options.timeout = timeout;
  options.transport = std::move(transport);
  return options;
}

void ProcessRank::reached(const std::string& point) {
  send_message(control_fd_, {"reached", point});
}

void ProcessRank::wait_to_be_killed(const std::string& point) {
  reached(point);
  for (;;) ::pause();
}

void ProcessRank::wait_for_go(const std::string& point) {
  reached(point);
  char byte;
  while (::read(go_fd_.get(), &byte, 1) < 0 && errno == EINTR) {
  }
}

// --- in the parent -------------------------------------------------------------------------------

ProcessRanks::ProcessRanks(ProcessRanksOptions options, const Body& body)
    : options_(std::move(options)), limit_(Deadline::after(options_.limit)) {
  std::fflush(nullptr);  // or each child would print what is buffered once more
  children_.resize(options_.host_of_rank.size());
  for (int r = 0; r < size(); ++r) start(r, body);
}

ProcessRanks::~ProcessRanks() {
  for (Child& child : children_) {
    if (child.pid <= 0 || child.ended) continue;
    ::kill(child.pid, SIGKILL);
    ::waitpid(child.pid, nullptr, 0);
  }
}

void ProcessRanks::start(int rank, const Body& body) {
  auto [control, child_control] = make_message_pair();
  auto [news, child_news] = make_message_pair();
  int go[2];
  if (::pipe(go) != 0) throw_errno("cannot make a pipe");
  const bool had_failure = testing::Test::HasFailure();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw_errno("cannot fork rank {}", rank);
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    for (Child& other : children_) {
      other.control.reset();
      other.news.reset();
      other.go.reset();
      other.pidfd.reset();
    }
    ::close(go[1]);
    ProcessRank me(rank, options_.host_of_rank, child_control.get(), child_news.get());
    me.go_fd_.reset(go[0]);
    Message last;
    try {
      last = {"result", body(me), ""};
      if (testing::Test::HasFailure() && !had_failure)
        last[2] = "has failed expectations, printed above";
    } catch (const std::exception& e) {
      last = {"result", "", e.what()};
    }
    try {
      send_message(child_control.get(), last);
    } catch (const std::exception&) {
    }
    std::fflush(nullptr);
    ::_exit(0);
  }
  ::close(go[0]);
  Child& child = children_[rank];
  child.pid = pid;
  child.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  child.control = std::move(control);
  child.news = std::move(news);
  child.go.reset(go[1]);
}

void ProcessRanks::await(int rank, const std::string& point) {
  Child& child = children_.at(rank);
  serve_until([&] { return child.ended || child.reached.contains(point); },
              fmt::format("rank {} at '{}'", rank, point));
  if (!child.reached.contains(point))
    throw std::runtime_error(
        fmt::format("rank {} ended before '{}': {}", rank, point, child.outcome.error));
}

void ProcessRanks::await_all(const std::string& point) {
  for (int r = 0; r < size(); ++r) await(r, point);
}

void ProcessRanks::await_end(int rank) {
  serve_until([&] { return children_.at(rank).ended; }, fmt::format("the end of rank {}", rank));
}

void ProcessRanks::go(int rank) {
  if (::write(children_.at(rank).go.get(), "g", 1) != 1) throw_errno("cannot let rank {} go", rank);
}

void ProcessRanks::signal(int rank, int signal) {
  if (::kill(children_.at(rank).pid, signal) != 0)
    throw_errno("cannot send signal {} to rank {}", signal, rank);
}

std::vector<Outcome> ProcessRanks::finish() {
  serve_until(
      [&] {
        return std::all_of(children_.begin(), children_.end(),
                           [](const Child& child) { return child.ended; });
      },
      "the end of all ranks");
  std::vector<Outcome> outcomes;
  for (const Child& child : children_) outcomes.push_back(child.outcome);
  return outcomes;
}

void ProcessRanks::serve_until(const std::function<bool()>& done, const std::string& what) {
  while (!done()) {
    if (limit_.passed()) throw std::runtime_error("hung, waiting for " + what + ": " + describe());
    serve_once();
  }
}

void ProcessRanks::serve_once() {
  std::vector<pollfd> polls;
  for (const Child& child : children_) {
    polls.push_back({child.ended ? -1 : child.control.get(), POLLIN, 0});
    polls.push_back({child.ended ? -1 : child.pidfd.get(), POLLIN, 0});
  }
  Deadline first = limit_;
  for (const auto& [name, waiting] : meetings_)
    for (const auto& [rank, one] : waiting)
      if (one.deadline.when() < first.when()) first = one.deadline;
  ::poll(polls.data(), polls.size(), first.poll_timeout_ms());
  for (int r = 0; r < size(); ++r) {
    // What a rank said before it died counts: read first.
    if (polls[2 * r].revents != 0) read_control(r);
    if (polls[2 * r + 1].revents != 0) reap(r);
  }
  fail_gatherings();
}

void ProcessRanks::read_control(int rank) {
  Child& child = children_[rank];
  while (auto message = receive_message(child.control.get(), Deadline::after({}))) {
    const std::string& kind = message->at(0);
    if (kind == "gather") {
      gather(rank, *message);
    } else if (kind == "reached") {
      child.reached.insert(message->at(1));
    } else if (kind == "result") {
      child.outcome.has_result = message->at(2).empty();
      child.outcome.result = message->at(1);
      child.outcome.error = message->at(2);
    }
  }
}

void ProcessRanks::reap(int rank) {
  Child& child = children_[rank];
  read_control(rank);
  int status = 0;
  if (::waitpid(child.pid, &status, WNOHANG) != child.pid) return;
  child.ended = true;
  const auto ended = std::ranges::count_if(children_, [](const Child& c) { return c.ended; });
  // After those that failed come those that have finished, perhaps because of a failure.
  child.end = static_cast<int>(ended) + (status == 0 ? size() : 0);
  child.outcome.signalled = WIFSIGNALED(status);
  child.outcome.status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  if (!options_.tell_news) return;
  for (int r = 0; r < size(); ++r) {
    if (children_[r].ended) continue;
    try {
      send_message(children_[r].news.get(),
                   {"departed", std::to_string(rank), std::to_string(status)});
    } catch (const Error&) {  // it is ending itself
    }
  }
}

void ProcessRanks::gather(int rank, const Message& message) {
  const MeetingName name{message.at(2), split_numbers(message.at(3))};
  const auto left = std::chrono::milliseconds(std::stoll(message.at(4)));
  auto& waiting = meetings_[name];
  waiting[rank] = {message.at(1), message.at(5), Deadline::after(left)};
  if (waiting.size() < name.second.size()) return;
  Message answer = {"gathered", ""};
  for (int member : name.second) answer.push_back(waiting.at(member).contribution);
  for (int member : name.second) {
    answer[1] = waiting.at(member).request;
    reply(member, answer);
  }
  meetings_.erase(name);
}

// Answers those who wait for a rank that died, or have waited long enough.
void ProcessRanks::fail_gatherings() {
  for (auto& [name, waiting] : meetings_) {
    int missing = -1;
    for (int member : name.second)
      if (!waiting.contains(member) &&
          (missing < 0 || children_[member].end < children_[missing].end))
        missing = member;  // whoever ended first: others may have ended because of it
    if (missing < 0) continue;
    std::erase_if(waiting, [&](const auto& entry) {
      const bool dead = children_[missing].ended;
      if (!dead && !entry.second.deadline.passed()) return false;
      const ErrorCode code = dead ? ErrorCode::peer_lost : ErrorCode::timeout;
      reply(entry.first, {"failed", entry.second.request, std::to_string(static_cast<int>(code)),
                          std::to_string(missing),
                          fmt::format("rank {} {}", missing, dead ? "died" : "did not come")});
      return true;
    });
  }
}

void ProcessRanks::reply(int rank, const Message& message) {
  try {
    send_message(children_[rank].control.get(), message);
  } catch (const Error&) {  // it died while it waited
  }
}

std::string ProcessRanks::describe() const {
  std::string text;
  for (int r = 0; r < size(); ++r) {
    const Child& child = children_[r];
    text += fmt::format("\n  rank {}: {}, reached [{}]", r, child.ended ? "ended" : "running",
                        fmt::join(child.reached, ", "));
    if (!child.outcome.error.empty()) text += ": " + child.outcome.error;
  }
  return text;
}

}  // namespace kolo::test
