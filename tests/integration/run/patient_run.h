// What `kolo run` does, with more time between SIGTERM and SIGKILL than a test has: a job that ends
// was ended by something else. So a test sees the cause of an end without looking at a clock.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "kolo_process.h"
#include "launch/supervisor.h"

namespace kolo::test {

class PatientRun {
 public:
  /// Ranks of this machine run `script` in a shell, in `directory`. To be called without threads.
  PatientRun(int ranks, const std::string& script, const std::filesystem::path& directory) {
    launch::ParallelJob job;
    job.argv = {"sh", "-c", script};
    job.directory = directory;
    job.placements = {{.host = "localhost", .ranks = ranks, .is_local = true}};
    job.environment = {"KOLO_TEST_MARK=" + mark_};
    job.grace = std::chrono::minutes(15);
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) throw_errno("cannot fork");
    if (pid_ > 0) return;
    int status = 1;
    try {
      status = launch::run_job(job);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    std::fflush(nullptr);
    ::_exit(status);
  }
  ~PatientRun() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    for (const pid_t pid : processes()) ::kill(pid, SIGKILL);
  }
  PatientRun(const PatientRun&) = delete;
  PatientRun& operator=(const PatientRun&) = delete;

  void signal(int number) const {
    if (pid_ > 0) ::kill(pid_, number);
  }
  [[nodiscard]] bool has_ended() {
    if (pid_ <= 0) return true;
    if (::waitpid(pid_, &status_, WNOHANG) != pid_) return false;
    pid_ = -1;
    return true;
  }
  /// The exit status as a shell has it.
  int wait() {
    if (pid_ > 0) ::waitpid(std::exchange(pid_, -1), &status_, 0);
    return exit_code_of(status_);
  }
  /// Processes of its ranks.
  [[nodiscard]] std::vector<pid_t> processes() const {
    return processes_with("KOLO_TEST_MARK", mark_);
  }

 private:
  const std::string mark_ = unique_mark();
  pid_t pid_ = -1;
  int status_ = 0;
};

}  // namespace kolo::test
