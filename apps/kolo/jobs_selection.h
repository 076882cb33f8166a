// How ls, rm and kill select jobs.
#pragma once

#include <string>
#include <vector>

#include "cli/option_set.h"
#include "kolo/jobs.h"

namespace kolo::app {

struct JobSelection {
  std::vector<std::string> ids;
  std::string name, workflow, state;

  void declare(cli::OptionSet& set);
  /// Throws invalid_argument.
  [[nodiscard]] jobs::JobFilter filter() const;
};

/// Words for an empty result: "no job has the state FAILED and the workflow 'TEST'".
std::string describe_nothing(const jobs::JobFilter& filter);

}  // namespace kolo::app
