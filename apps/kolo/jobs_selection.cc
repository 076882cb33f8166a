#include "jobs_selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "jobs_database.h"
#include "names.h"

namespace kolo::app {

using namespace cli::rows;

namespace {

constexpr cli::Option<JobSelection> kSelectionRows[] = {
    {&JobSelection::ids, "id", "N", "Select the job with this number."},
    {&JobSelection::name, "name", "NAME", "Select jobs of this name, or of a pattern: 'task*'."},
    {&JobSelection::workflow, "wf", "NAME",
     "Select jobs of this workflow, or of a pattern: 'TEST*'.", aliases("--wf-filter --workflow")},
    {&JobSelection::state, "state", "STATE", "Select jobs in this state, for example FAILED.",
     names(job_state_names)},
};

}  // namespace

void JobSelection::declare(cli::OptionSet& set) { set.add("Selection", kSelectionRows, *this); }

jobs::JobFilter JobSelection::filter() const {
  jobs::JobFilter filter;
  for (const auto& id : ids) filter.ids.push_back(parse_job_id(id));
  if (!state.empty()) filter.state = jobs::parse_state(state);
  filter.workflow = workflow;
  filter.name = name;
  return filter;
}

std::string describe_nothing(const jobs::JobFilter& filter) {
  std::vector<std::string> parts;
  for (const auto id : filter.ids) parts.push_back(fmt::format("the number {}", number_of(id)));
  if (!filter.name.empty()) parts.push_back(fmt::format("the name '{}'", filter.name));
  if (!filter.workflow.empty()) parts.push_back(fmt::format("the workflow '{}'", filter.workflow));
  if (filter.state) parts.push_back(fmt::format("the state {}", jobs::to_string(*filter.state)));
  if (parts.empty()) return "there are no jobs";
  return fmt::format("no job has {}", fmt::join(parts, " and "));
}

}  // namespace kolo::app
