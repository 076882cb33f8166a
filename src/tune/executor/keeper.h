// The process that trials are children of, so that none outlives its study.
//
// It is forked from the controller and does nothing but start programs, tell their ends, and kill.
// When the controller is gone, however that happened, it kills everything below it; when it is
// killed itself, the kernel kills the programs.
//
// A program's end is told when nothing of it is left: what it started and left behind is killed
// before. And a keeper begins when nothing of an earlier one of the same study is left. So two runs
// of a trial never write into its directory at the same time.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "tune/executor/executor.h"

namespace kolo::tune {

struct KeptProgram {
  RunId id;
  std::vector<std::string> argv;
  std::vector<std::string> environment;  ///< NAME=VALUE on top of the controller's
  std::filesystem::path directory;       ///< where it starts; "" = here
  std::filesystem::path out, err;        ///< files, appended to
  /// Kept open in the program, which is told its number by this variable.
  int descriptor = -1;
  std::string descriptor_variable;
  /// The entry of `environment` by which all processes of this run, and no others, are known.
  std::string mark;
};

/// What the keeper says.
struct KeeperNews {
  RunId id;
  int status = 0;     ///< as from waitpid
  std::string error;  ///< it could not be started
};

class Keeper {
 public:
  /// Waits for what is left of an earlier keeper of the study in this directory, then forks.
  explicit Keeper(const std::filesystem::path& study_directory);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// To poll for reading.
  [[nodiscard]] int fd() const noexcept { return link_.get(); }
  /// False: the keeper is gone.
  bool start(const KeptProgram& program);
  bool signal(RunId id, int signal);
  /// One piece of news, if there is one; `gone` is set when there never will be.
  std::optional<KeeperNews> read(bool& gone);

 private:
  pid_t pid_ = -1;
  Fd link_;
};

}  // namespace kolo::tune
