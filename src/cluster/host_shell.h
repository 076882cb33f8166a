// Commands on a host of a cluster, by ssh or by a command of the user's that does what ssh does; on
// this machine without it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/subprocess.h"
#include "cluster/cluster_file.h"
#include "exec/ssh.h"

namespace kolo::cluster {

/// What a command that failed said last; how it ended if it said nothing.
std::string last_line_of(const CommandResult& result);

/// A line for a shell that runs this one in a session of its own, without input, and ends all of it
/// when its own standard input ends.
std::string guarded_line(const std::string& line);

class HostShell {
 public:
  /// `kolo` is the path of the program on the host; "" = that of this process.
  HostShell(const SshAccess& access, std::string host, const std::string& kolo);

  [[nodiscard]] const std::string& host() const noexcept { return host_; }
  [[nodiscard]] bool is_local() const noexcept { return is_local_; }

  /// The words that have a shell of the host run this line.
  [[nodiscard]] std::vector<std::string> words_for(const std::string& line) const;
  /// The words that log in there, with a terminal.
  [[nodiscard]] std::vector<std::string> login_words() const;

  /// Runs the line with `input`, at most 60 KB, on its standard input; what it printed. Throws
  /// unavailable, naming the host and saying in one line what went wrong; timeout.
  std::string run(const std::string& line, Deadline deadline, std::string_view input = {}) const;
  /// Runs the line without input; it ends when this process does.
  void run_guarded(const std::string& line, Deadline deadline) const;
  /// `kolo ARGUMENTS` there.
  std::string run_kolo(const std::string& arguments, Deadline deadline,
                       std::string_view input) const;

  // A directory's content becomes the content of the other directory, beside what is there; a file
  // becomes the other file. Throw as run() does.
  void copy_to(const std::filesystem::path& here, const std::string& there,
               Deadline deadline) const;
  void copy_from(const std::string& there, const std::filesystem::path& here,
                 Deadline deadline) const;

 private:
  std::string run(const std::string& line, Deadline deadline, int standard_input) const;

  std::string host_;
  exec::SshOptions ssh_;
  std::string login_;  // USER@HOST
  std::string shell_;  // instead of ssh
  bool is_local_;
};

}  // namespace kolo::cluster
