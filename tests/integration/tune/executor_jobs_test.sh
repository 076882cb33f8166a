#!/usr/bin/env bash
# Trials as jobs, as docs/tune.md says it: kolo tune --executor jobs, with a launcher beside it.
#
#   executor_jobs_test.sh CASE KOLO
set -euo pipefail
case_name="$1" kolo="$2"
# shellcheck source=../jobs/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../jobs/lib.sh"

set_up() {
  new_database
  export KOLO_RESULTS="$scratch/results"
  printf 'x: {uniform: [0, 1]}\n' >space.yaml
}
start_launcher() { "$kolo" launcher --nodes 1 --cpus-per-node 4 --idle-seconds 60 --grace-seconds 0.5 >launcher.out 2>&1 & }
program() {
  printf '#!/bin/sh\n%s\n' "$2" >"$1"
  chmod +x "$1"
}
study=(--executor jobs --name s --space space.yaml --metric loss --mode min --max-concurrent 3 --quiet)
jobs_made() { "$kolo" ls jobs --json | grep -c '"name": "task'; }

# Reports, results and failures; the program is named relative to where the study starts.
runs() {
  set_up
  start_launcher
  program trial.sh "\"$kolo\" report loss=\$KOLO_PARAM_X step=1; \"$kolo\" report loss=0\$1 step=2; [ -e space.yaml ]"
  has "$("$kolo" tune "${study[@]}" --num-samples 6 -- ./trial.sh {x})" 'best: loss'
  same "$(jobs_made)" 6
  has "$("$kolo" trials s --csv)" TERMINATED
  # A failure has its reason, and the exit status of the program.
  program fails.sh 'echo out of coffee >&2; exit 4'
  refused 1 'the program exited with status 4; it said:
out of coffee' "$kolo" tune "${study[@]}" --name f --num-samples 1 -- ./fails.sh
}

# A scheduler stops trials that report through files.
stops() {
  set_up
  start_launcher
  program trial.sh "while \"$kolo\" report loss=\$KOLO_PARAM_X; do sleep 0.1; done"
  "$kolo" tune "${study[@]}" --num-samples 3 --stop training_iteration=3 -- ./trial.sh >out
  has "$("$kolo" trials s --csv)" TERMINATED
  same "$("$kolo" ls jobs --json | grep -c '"state": "USER_KILLED"')" 3
  has "$("$kolo" ls --history)" 'ended by the study s'
  [[ "$("$kolo" ls --history)" != *'by the user'* ]] || fail 'no user has killed a job'
}

# The study is killed; its jobs go on, and the resumed study finds them.
killed() {
  set_up
  start_launcher
  program trial.sh "\"$kolo\" report loss=2; until [ -e '$scratch/go' ]; do sleep 0.05; done; \"$kolo\" report loss=1"
  "$kolo" tune "${study[@]}" --num-samples 3 -- ./trial.sh >out 2>&1 &
  local tune=$!
  all_report() { [[ "$(cat results/s/*/reports-*.jsonl 2>/dev/null | wc -l)" == 3 ]]; }
  eventually 30 all_report
  kill -9 "$tune"
  wait "$tune" 2>/dev/null || true
  touch go
  has "$("$kolo" resume s --quiet)" 'best: loss 1'
  same "$(jobs_made)" 3
  # A study that is stopped kills its jobs.
  rm go
  "$kolo" resume s --num-samples 5 --quiet >out 2>&1 &
  tune=$!
  two_run() { [[ "$("$kolo" ls jobs --json | grep -c '"state": "RUNNING"')" == 2 ]]; }
  eventually 30 two_run
  kill "$tune"
  wait "$tune" || true
  has "$(cat out)" 'kolo resume s'
  no_job_runs() { ! "$kolo" ls jobs --json | grep -q '"state": "RUNNING"'; }
  eventually 20 no_job_runs
}

# A study is killed and renamed while its jobs wait: they have directories that are gone.
renamed() {
  set_up
  program trial.sh "\"$kolo\" report loss=1"
  "$kolo" tune "${study[@]}" --num-samples 2 -- ./trial.sh >out 2>&1 &
  local tune=$!
  two_wait() { [[ "$(jobs_made)" == 2 ]]; }
  eventually 30 two_wait
  kill -9 "$tune"
  wait "$tune" 2>/dev/null || true
  eventually 20 "$kolo" rename s t
  "$kolo" resume t --quiet >resumed 2>&1 &
  tune=$!
  two_more() { [[ "$(jobs_made)" == 4 ]]; }
  eventually 30 two_more
  start_launcher
  wait "$tune"
  has "$(<resumed)" 'best: loss 1'
  same "$("$kolo" ls jobs --json | grep -c '"state": "JOB_FINISHED"')" 2
  same "$("$kolo" ls jobs --json | grep -c '"state": "USER_KILLED"')" 2
  has "$("$kolo" ls --history)" 'the study was renamed'
}

# A study without a name that is a job continues when the job runs again.
nameless_job() {
  set_up
  program trial.sh "\"$kolo\" report loss=1; mkdir '$scratch/first' 2>/dev/null || [ -e '$scratch/go' ] || exec sleep 60"
  "$kolo" app --name tune --exec "$kolo tune --space $scratch/space.yaml --metric loss --mode min --num-samples 2 --max-concurrent 1 --quiet -- $scratch/trial.sh"
  "$kolo" job --name tune --app tune
  "$kolo" launcher --grace-seconds 2 >launcher.out 2>&1 &
  local launcher=$!
  one_has_ended() { [[ "$("$kolo" studies --json 2>/dev/null)" == *trial.sh* && "$("$kolo" trials "$(name)" --csv 2>/dev/null)" == *TERMINATED* ]]; }
  name() { "$kolo" studies --json | sed -n 's/.*"name":"\([^"]*\)".*/\1/p'; }
  eventually 30 one_has_ended
  kill "$launcher"
  wait "$launcher" || true
  touch go
  launcher
  same "$(name | wc -l)" 1
  same "$("$kolo" trials "$(name)" --csv | grep -c TERMINATED)" 2
}

bad_input() {
  set_up
  program trial.sh 'echo 1'
  refused 1 "did you mean 'jobs'" "$kolo" tune "${study[@]}" --executor job --num-samples 1 -- ./trial.sh
  refused 2 'a program needs process, ranks or jobs' "$kolo" tune "${study[@]}" --executor thread --num-samples 1 -- ./trial.sh
  refused 1 'KOLO_DB' env -u KOLO_DB "$kolo" tune "${study[@]}" --num-samples 1 -- ./trial.sh
  [[ ! -e results/s ]] || fail 'what was refused left a study behind'
}

"$case_name"
