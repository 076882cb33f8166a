#!/usr/bin/env bash
# Reads and continues what an earlier version of kolo wrote: formats_test.sh KOLO DATA_DIR
set -euo pipefail
kolo="$1" data="$(cd "$2" && pwd)"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export HOME="$scratch"
fail() { echo "FAIL: $*" >&2; exit 1; }

# A study: the same trials, and more of them.
zcat "$data/study.db.gz" >study.db
"$kolo" trials kept --storage study.db --columns trial_id,loss,lr --csv >trials.csv
diff "$data/trials.csv" trials.csv || fail "the trials of the study differ"
"$kolo" best kept --storage study.db | grep -qF "$(sed -n 2p "$data/trials.csv" | cut -d, -f1)" ||
  fail "another trial is the best one"

# Jobs: the finished one is known, and the one that waited runs.
mkdir -p jobs/data jobs/log jobs/qsubmit
zcat "$data/jobs.db.gz" >jobs/kolo.db
install -m 600 "$data/kolo-jobs.json" jobs/
export KOLO_DB="$scratch/jobs"
"$kolo" ls jobs | grep -qE '^1 +first +KEPT +hello +JOB_FINISHED' || fail "the first job is not finished: $("$kolo" ls jobs)"
"$kolo" launcher --nodes 1 --idle-seconds 0.2
"$kolo" ls jobs | grep -qE '^2 +second +KEPT +hello +JOB_FINISHED' || fail "the second job has not run: $("$kolo" ls jobs)"

# Results of a search: the same best evaluation.
"$kolo" analytics topk "$data/results.csv" -k 1 | grep -qE '^0 +-12\.836' || fail "results.csv is read differently"
