// An allocation of a batch system and the launcher in it, as submit and submit-launch take them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/option_set.h"
#include "jobs/database/queued_launches.h"

namespace kolo::app {

struct AllocationOptions {
  jobs::LaunchRequest launch;
  std::vector<std::string> launcher_flags;
  std::optional<int> gpus_per_node;
  std::string scheduler;
  bool dry_run = false;

  void declare(cli::OptionSet& set);
  /// What was asked for. Throws invalid_argument.
  [[nodiscard]] jobs::LaunchRequest request() const;
};

}  // namespace kolo::app
