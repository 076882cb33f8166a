// What `kolo run` can be told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/option_set.h"

namespace kolo::app {

struct RunOptions {
  std::optional<int> num_proc, virtual_ranks;
  std::string hosts, hostfile, cluster;
  double cluster_wait = 0;  ///< seconds
  std::vector<std::string> env;
  std::string transport;
  bool gloo = false, mpi = false;
  std::string network_interface;
  std::optional<double> fusion_threshold_mb, stall_warning, stall_shutdown;
  std::string timeline_filename, autotune_log_file;
  std::optional<int> min_np, max_np, slots_per_host, reset_limit;
  std::string discovery_script, cooldown_range, notice_signal, commit_dir, resume;
  std::optional<int> commit_every;
  double elastic_timeout = 600;  ///< seconds
  bool timeline_mark_cycles = false, autotune = false, no_stall_check = false;
  std::optional<int> ssh_port;
  std::string ssh_identity_file, ssh = "ssh", remote_kolo;
  double start_timeout = 30;  ///< seconds
  std::string bind_to = "none";
  std::string output_filename;
  bool timestamps = false;
  std::string log_level;
  bool verbose = false;
  std::string config_file;
  bool check_build = false;
  std::vector<std::string> program;

  void declare(cli::OptionSet& set);
};

}  // namespace kolo::app
