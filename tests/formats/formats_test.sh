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
"$kolo" top --once --storage study.db | grep -q kept || fail "kolo top does not show the study"
"$kolo" report-html kept --storage study.db -o kept.html >report.log && grep -q '</html>' kept.html ||
  fail "no report of the study: $(cat report.log)"
"$kolo" analytics topk study.db#kept -k 1 | grep -qF "$(sed -n 2p "$data/trials.csv" | cut -d, -f2 | cut -c-7)" ||
  fail "kolo analytics reads another best trial"
trials=$(($(wc -l <trials.csv) - 1))
"$kolo" resume kept --storage study.db --num-samples $((trials + 2)) >resume.log 2>&1 ||
  fail "the study does not go on: $(cat resume.log)"
"$kolo" trials kept --storage study.db --columns trial_id,loss,lr --csv >more.csv
(($(wc -l <more.csv) == trials + 3)) || fail "the study has not got two trials more: $(cat more.csv)"
diff trials.csv <(head -n $((trials + 1)) more.csv) || fail "the trials of the study have changed"

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
