#include "jobs/database/schema.h"

namespace kolo::jobs {
namespace {

// `jobs` has what is looked at and changed often, in short rows; what a user wrote is in
// `job_specs`. `queue` = 1 marks the jobs that a launcher may take: they alone are in the index
// by which they are taken, so that jobs that have ended cost nothing.
constexpr store::Migration kSteps[] = {
    {1, R"sql(
CREATE TABLE job_counters (name TEXT PRIMARY KEY, value BIGINT NOT NULL);
INSERT INTO job_counters (name, value) VALUES ('job', 0);
INSERT INTO job_counters (name, value) VALUES ('launcher', 0);
INSERT INTO job_counters (name, value) VALUES ('queued_launch', 0);
CREATE TABLE applications (
  name TEXT PRIMARY KEY,
  executable TEXT NOT NULL,
  preprocess TEXT NOT NULL,
  postprocess TEXT NOT NULL,
  envscript TEXT NOT NULL,
  description TEXT NOT NULL
);
CREATE TABLE jobs (
  id BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  workflow TEXT NOT NULL,
  application TEXT NOT NULL,
  state BIGINT NOT NULL,
  queue BIGINT NOT NULL,
  lease BIGINT NOT NULL,
  attempt BIGINT NOT NULL,
  steps BIGINT NOT NULL,
  waiting BIGINT NOT NULL,
  parents BIGINT NOT NULL,
  children BIGINT NOT NULL,
  retries BIGINT NOT NULL,
  return_code BIGINT,
  num_nodes BIGINT NOT NULL,
  ranks BIGINT NOT NULL,
  cores BIGINT NOT NULL,
  gpus DOUBLE PRECISION NOT NULL,
  minutes BIGINT NOT NULL,
  created DOUBLE PRECISION NOT NULL
) /*clustered*/;
CREATE INDEX jobs_queue ON jobs (num_nodes DESC, minutes DESC, id) WHERE queue = 1;
CREATE INDEX jobs_lease ON jobs (lease, state) WHERE lease <> 0;
CREATE INDEX jobs_state ON jobs (state, id);
CREATE TABLE job_specs (id BIGINT PRIMARY KEY, spec TEXT NOT NULL) /*clustered*/;
CREATE TABLE job_parents (
  child BIGINT NOT NULL,
  parent BIGINT NOT NULL,
  PRIMARY KEY (child, parent)
) /*clustered*/;
CREATE INDEX job_children ON job_parents (parent, child);
CREATE TABLE job_history (
  job BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  state BIGINT NOT NULL,
  time DOUBLE PRECISION NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (job, seq)
) /*clustered*/;
CREATE TABLE launchers (
  id BIGINT PRIMARY KEY,
  host TEXT NOT NULL,
  pid BIGINT NOT NULL,
  state BIGINT NOT NULL,
  started DOUBLE PRECISION NOT NULL,
  heard DOUBLE PRECISION NOT NULL,
  lease_seconds DOUBLE PRECISION NOT NULL,
  about TEXT NOT NULL
);
CREATE TABLE queued_launches (
  id BIGINT PRIMARY KEY,
  scheduler TEXT NOT NULL,
  scheduler_id TEXT NOT NULL,
  state TEXT NOT NULL,
  created DOUBLE PRECISION NOT NULL,
  about TEXT NOT NULL
);
)sql"},
    {2, R"sql(
ALTER TABLE jobs ADD COLUMN yields BIGINT NOT NULL DEFAULT 0;
CREATE INDEX jobs_yield ON jobs (lease) WHERE yields = 1;
)sql"},
};

}  // namespace

std::span<const store::Migration> migrations() { return kSteps; }

}  // namespace kolo::jobs
