#include "store/study_schema.h"

namespace kolo::store {
namespace {

// Rows lie in the order of their keys (/*clustered*/): what a study reads together is together, and
// a report costs one tree.
constexpr Migration kSteps[] = {
    {1, R"sql(
CREATE TABLE studies (
  id BIGINT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  directory TEXT NOT NULL,
  spec TEXT NOT NULL,
  status BIGINT NOT NULL,
  created DOUBLE PRECISION NOT NULL,
  elapsed DOUBLE PRECISION NOT NULL,
  seq BIGINT NOT NULL,
  logged BIGINT NOT NULL,
  owner TEXT,
  owner_host TEXT,
  owner_pid BIGINT,
  owner_started BIGINT,
  heard DOUBLE PRECISION
);
CREATE TABLE trials (
  study BIGINT NOT NULL,
  number BIGINT NOT NULL,
  status BIGINT NOT NULL,
  point TEXT NOT NULL,
  config TEXT NOT NULL,
  directory TEXT NOT NULL,
  asked_seq BIGINT NOT NULL,
  ended_seq BIGINT,
  created DOUBLE PRECISION NOT NULL,
  started DOUBLE PRECISION,
  ended DOUBLE PRECISION,
  seconds DOUBLE PRECISION NOT NULL,
  iteration BIGINT NOT NULL,
  failures BIGINT NOT NULL,
  outcome TEXT NOT NULL,
  error TEXT NOT NULL,
  why TEXT NOT NULL,
  place TEXT NOT NULL,
  PRIMARY KEY (study, number)
) /*clustered*/;
CREATE TABLE reports (
  study BIGINT NOT NULL,
  trial BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  iteration BIGINT NOT NULL,
  time DOUBLE PRECISION NOT NULL,
  seconds DOUBLE PRECISION NOT NULL,
  metrics TEXT NOT NULL,
  action BIGINT NOT NULL,
  reason TEXT NOT NULL,
  others_waited BIGINT NOT NULL,
  PRIMARY KEY (study, trial, seq)
) /*clustered*/;
CREATE TABLE checkpoints (
  study BIGINT NOT NULL,
  trial BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  iteration BIGINT NOT NULL,
  path TEXT NOT NULL,
  created DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (study, path)
) /*clustered*/;
CREATE TABLE events (
  study BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  time DOUBLE PRECISION NOT NULL,
  trial BIGINT,
  kind TEXT NOT NULL,
  detail TEXT NOT NULL,
  PRIMARY KEY (study, seq)
) /*clustered*/;
CREATE TABLE requests (
  study BIGINT NOT NULL,
  number BIGINT NOT NULL,
  kind TEXT NOT NULL,
  trial BIGINT,
  PRIMARY KEY (study, number)
);
)sql"},
    {2, R"sql(
ALTER TABLE studies ADD COLUMN first_name TEXT;
UPDATE studies SET first_name = name;
)sql"},
};

}  // namespace

std::span<const Migration> study_migrations() { return kSteps; }

}  // namespace kolo::store
