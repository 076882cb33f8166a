#include "jobs/database/workflow_graph.h"

#include "jobs/database/body.h"

namespace kolo::jobs {
namespace {

/// One of the two may be of another workflow, or have come since the nodes were read.
template <class Key>
void add_edge(WorkflowGraph& graph, const std::map<Key, std::size_t>& places, const Key& from,
              const Key& to) {
  const auto parent = places.find(from), child = places.find(to);
  if (parent != places.end() && child != places.end())
    graph.edges.emplace_back(parent->second, child->second);
}

bool has_more_than(store::Database& store, const std::string& workflow, std::int64_t most) {
  auto& row = store.prepare("SELECT 1 FROM jobs WHERE workflow = $1 LIMIT 1 OFFSET $2");
  row.bind(1, workflow).bind(2, most);
  const bool has = row.next();
  row.reset();
  return has;
}

void add_jobs(store::Database& store, const std::string& workflow, WorkflowGraph& graph) {
  std::map<std::int64_t, std::size_t> places;
  auto& job = store.prepare("SELECT id, name, state FROM jobs WHERE workflow = $1 ORDER BY id");
  job.bind(1, workflow);
  while (job.next()) {
    places.emplace(job.integer(0), graph.nodes.size());
    graph.nodes.push_back({std::string(job.text(1)),
                           JobId{job.integer(0)},
                           {{static_cast<JobState>(job.integer(2)), std::int64_t{1}}}});
  }
  auto& edge = store.prepare(
      "SELECT p.parent, p.child FROM job_parents p JOIN jobs c ON c.id = p.child "
      "WHERE c.workflow = $1 ORDER BY p.parent, p.child");
  edge.bind(1, workflow);
  while (edge.next()) add_edge(graph, places, edge.integer(0), edge.integer(1));
}

void add_applications(store::Database& store, const std::string& workflow, WorkflowGraph& graph) {
  std::map<std::string, std::size_t> places;
  auto& count = store.prepare(
      "SELECT application, state, COUNT(*) FROM jobs WHERE workflow = $1 "
      "GROUP BY application, state ORDER BY application, state");
  count.bind(1, workflow);
  while (count.next()) {
    const std::string name(count.text(0));
    const auto place = places.emplace(name, graph.nodes.size());
    if (place.second) graph.nodes.push_back({name});
    graph.nodes[place.first->second].states[static_cast<JobState>(count.integer(1))] +=
        count.integer(2);
  }
  auto& edge = store.prepare(
      "SELECT DISTINCT f.application, c.application FROM job_parents p "
      "JOIN jobs c ON c.id = p.child JOIN jobs f ON f.id = p.parent "
      "WHERE c.workflow = $1 AND f.workflow = $1 AND f.application <> c.application");
  edge.bind(1, workflow);
  while (edge.next()) add_edge(graph, places, std::string(edge.text(0)), std::string(edge.text(1)));
}

}  // namespace

WorkflowGraph workflow_graph(JobDatabase& jobs, const std::string& workflow, std::int64_t most) {
  auto& store = *body_of(jobs).store;
  WorkflowGraph graph;
  graph.is_grouped = has_more_than(store, workflow, most);
  graph.is_grouped ? add_applications(store, workflow, graph) : add_jobs(store, workflow, graph);
  return graph;
}

}  // namespace kolo::jobs
