// Names that may stand for values, for completion and for `kolo list`.
#pragma once

#include "cli/option.h"

namespace kolo::app {

std::vector<cli::NamedText> transport_names(const cli::OptionSet& typed);
std::vector<cli::NamedText> sampler_names(const cli::OptionSet& typed);
std::vector<cli::NamedText> scheduler_names(const cli::OptionSet& typed);
std::vector<cli::NamedText> executor_names(const cli::OptionSet& typed);
std::vector<cli::NamedText> problem_names(const cli::OptionSet& typed);
std::vector<cli::NamedText> runner_names(const cli::OptionSet& typed);
std::vector<cli::NamedText> batch_system_names(const cli::OptionSet& typed);
std::vector<cli::NamedText> store_names(const cli::OptionSet& typed);
std::vector<cli::NamedText> logger_names(const cli::OptionSet& typed);
std::vector<cli::NamedText> job_state_names(const cli::OptionSet& typed);

/// What the database has at this moment. They throw if there is none.
std::vector<cli::NamedText> study_names(const cli::OptionSet& typed);
std::vector<cli::NamedText> application_names(const cli::OptionSet& typed);
/// Clusters that stand.
std::vector<cli::NamedText> cluster_names(const cli::OptionSet& typed);

}  // namespace kolo::app
