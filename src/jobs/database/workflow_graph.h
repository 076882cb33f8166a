// Which jobs of a workflow wait for which, as something that can be drawn.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kolo/jobs.h"

namespace kolo::jobs {

struct WorkflowGraph {
  struct Node {
    std::string label;  ///< the name of a job, or of an application
    JobId id{};         ///< of the job; 0 = several jobs
    std::map<JobState, std::int64_t> states{};
  };
  /// Jobs of one application are one node, because there are too many to draw each.
  bool is_grouped = false;
  std::vector<Node> nodes{};
  std::vector<std::pair<std::size_t, std::size_t>> edges{};  ///< parent, child: places in `nodes`
};

/// Each job by itself if there are at most `most` of them.
WorkflowGraph workflow_graph(JobDatabase& jobs, const std::string& workflow, std::int64_t most);

}  // namespace kolo::jobs
