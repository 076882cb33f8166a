#!/usr/bin/env bash
# kolo hps, as users type it.
#
#   hps_test.sh CASE KOLO COMPILER
set -euo pipefail
case_name="$1" kolo="$2" compiler="$3"
# shellcheck source=../jobs/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../jobs/lib.sh"

rows() { grep -c ',DONE,' "$1/results.csv"; }
ids() { awk -F, -v column="$(head -n 1 "$1/results.csv" | tr ',' '\n' | grep -n '^job_id$' | cut -d: -f1)" \
  'NR > 1 { print $column }' "$1/results.csv"; }

# Every built-in function, by every evaluator that needs nothing else.
functions() {
  local name
  for name in $("$kolo" hps random --problem none 2>&1 | grep -o 'benchmark\.hps\.[A-Za-z0-9_]*' | sort -u); do
    "$kolo" hps random --problem "$name" --evaluator thread --max-evals 5 --log-dir "log/$name" --quiet >/dev/null ||
      fail "$name"
    [[ "$(wc -l <"log/$name/results.csv")" == 6 ]] || fail "$name: $(cat "log/$name/results.csv")"
  done
  has "$("$kolo" hps ambs --problem deephyper.benchmark.hps.polynome2.Problem --run deephyper.benchmark.hps.polynome2.run \
    --max-evals 10 --num-workers 2 --log-dir process --quiet)" '10 evaluations, 0 failed'
  has "$("$kolo" hps tpe --problem benchmark.hps.branin --evaluator ranks --num-ranks-per-node 2 --max-evals 4 \
    --log-dir ranks --quiet)" '4 evaluations, 0 failed'
  # Where there is no cluster, Ray's word means processes of this machine.
  has "$("$kolo" hps random --problem benchmark.hps.branin --evaluator ray --max-evals 3 --log-dir ray --quiet)" \
    '3 evaluations, 0 failed'
  # The starting point is tried first.
  has "$(grep ',0,DONE,' process/results.csv)" '10.0,10.0,10.0'
  # The seed decides.
  for twin in a b; do
    "$kolo" hps ambs --problem benchmark.hps.ackley --evaluator serial --max-evals 15 --seed 7 --log-dir $twin --quiet >/dev/null
  done
  same "$(cut -d, -f1-6 a/results.csv)" "$(cut -d, -f1-6 b/results.csv)"
  has "$("$kolo" hps random --problem benchmark.hps.ackley --evaluator serial --max-evals 3 --log-dir json --json)" trial_complete
}

# A file and any program.
programs() {
  printf 'x: {uniform: [-5, 5]}\nkind: {choice: [a, b]}\n' >space.yaml
  cat >run.sh <<'END'
#!/bin/sh
case "$2" in a) bonus=1 ;; *) bonus=0 ;; esac
echo "some words"
awk "BEGIN { print $bonus - ($1) * ($1) }"
END
  chmod +x run.sh
  has "$("$kolo" hps tpe --problem space.yaml --max-evals 20 --log-dir words --quiet -- ./run.sh {x} {kind})" \
    '20 evaluations, 0 failed'
  cat >dh.py <<'END'
#!/bin/sh
echo "DH-OUTPUT: $KOLO_PARAM_X"
echo "done, thank you"
END
  chmod +x dh.py
  has "$("$kolo" hps random --problem space.yaml --run "$scratch/dh.py" --max-evals 5 --log-dir dh --quiet)" '5 evaluations, 0 failed'
  has "$("$kolo" hps random --problem space.yaml --max-evals 1 --log-dir one --quiet -- echo 1)" '1 evaluation, 0 failed'
  # No limit of time.
  has "$("$kolo" hps random --problem space.yaml --max-evals 2 --eval-timeout-minutes 0 --log-dir limit --quiet -- echo 1)" \
    '2 evaluations, 0 failed'
  # Two objectives where the problem has one.
  refused 1 '`objectives: 2`' "$kolo" hps random --problem space.yaml --max-evals 1 --log-dir pair --quiet -- echo 'DH-OUTPUT: [1, 2]'
  # Known results are not asked for again.
  printf 'x: {choice: [1, 2]}\n' >two.yaml
  printf '#!/bin/sh\necho run >>%s/runs\necho $KOLO_PARAM_X\n' "$scratch" >count.sh
  chmod +x count.sh
  "$kolo" hps random --problem two.yaml --cache-key to_dict --num-workers 1 --max-evals 9 --log-dir cache --quiet -- ./count.sh >/dev/null
  [[ "$(wc -l <runs)" -le 2 ]] || fail "$(wc -l <runs) runs of two configurations"
}

# Run functions that crash, hang, print nonsense.
failures() {
  printf 'x: {choice: [crash, hang, nonsense, status, said, fine]}\n' >space.yaml
  cat >run.sh <<'END'
#!/bin/sh
case "$KOLO_PARAM_X" in
  crash) kill -SEGV $$ ;;
  hang) while :; do sleep 10; done ;;
  nonsense) head -c 100000 /dev/urandom ;;
  status) echo 1.5; echo oh no >&2; exit 3 ;;
  said) echo 'DH-OUTPUT: F_memory' ;;
  fine) echo 1.5 ;;
esac
END
  chmod +x run.sh
  "$kolo" hps grid --problem space.yaml --num-workers 3 --eval-timeout-minutes 0.01 \
    --log-dir log --quiet -- ./run.sh >out 2>&1 || fail "$(cat out)"
  has "$(cat out)" '6 evaluations, 5 failed'
  has "$(grep '^crash' log/results.csv)" 'F_error'
  has "$(grep '^hang' log/results.csv)" 'F_timeout'
  has "$(grep '^nonsense' log/results.csv)" 'F_error'
  has "$(grep '^status' log/results.csv)" 'F_error'
  has "$(grep '^said' log/results.csv)" 'F_memory'
  has "$(grep '^fine' log/results.csv)" ',1.5,'
  if pgrep -f "$scratch/run.sh" >/dev/null; then fail 'something still runs'; fi
  # When nothing works the search has failed.
  refused 1 '2 evaluations, 2 failed' "$kolo" hps random --problem space.yaml --max-evals 2 --log-dir all --quiet -- false
}

# kill -9 at moments of all kinds; what was evaluated is never lost and nothing is there twice.
killed() {
  printf '#!/bin/sh\necho $KOLO_TRIAL_ID >>%s/evaluated\nsleep 0.02\necho $KOLO_PARAM_X\n' "$scratch" >run.sh
  chmod +x run.sh
  printf 'x: {uniform: [0, 1]}\n' >space.yaml
  local search=("$kolo" hps ambs --problem space.yaml --max-evals 60 --num-workers 2 --log-dir log --resume --quiet -- ./run.sh)
  local wanted seen=0
  for wanted in 3 10 11 25 40 55; do
    "${search[@]}" >/dev/null 2>&1 &
    eventually 30 enough_rows "$wanted"
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    seen=$(rows log)
  done
  [[ "$seen" -ge 55 ]] || fail "$seen rows"
  has "$("${search[@]}")" '60 evaluations, 0 failed'
  same "$(ids log | sort -n | tr '\n' ' ')" "$(seq 0 59 | tr '\n' ' ')"
}
enough_rows() { [[ -e log/results.csv && "$(rows log)" -ge "$1" ]]; }

# An evaluation fills the disk: the search waits, says so, and goes on when there is room again.
full_disk() {
  mkdir disk
  mount -t tmpfs -o size=3m none disk 2>/dev/null || { echo 'mounting is not permitted here'; exit 77; }
  trap 'umount -l "$scratch/disk"; cleanup_jobs' EXIT
  printf 'x: {uniform: [0, 1]}\n' >space.yaml
  cat >run.sh <<'END'
#!/bin/sh
case "$KOLO_TRIAL_ID" in *_00003) head -c 10000000 /dev/zero >"$KOLO_TRIAL_DIR/large" 2>/dev/null ;; esac
echo "$KOLO_PARAM_X"
END
  chmod +x run.sh
  "$kolo" hps random --problem space.yaml --num-workers 1 --max-evals 12 --log-dir disk/log --quiet -- "$scratch/run.sh" >out 2>&1 &
  local search=$!
  eventually 30 file_has out 'is tried again'
  rm disk/log/search/*/large
  wait "$search" || fail "$(cat out)"
  has "$(cat out)" '12 evaluations'
  same "$(ids disk/log | sort -n | tr '\n' ' ')" "$(seq 0 11 | tr '\n' ' ')"
}

# Evaluations as jobs of a database; the search is killed, its jobs go on and are found again.
through_jobs() {
  new_database
  "$kolo" hps tpe --problem benchmark.hps.ackley --evaluator jobs --num-workers 4 --max-evals 30 --log-dir log --quiet >out 2>&1 &
  local search=$!
  "$kolo" launcher --nodes 2 --cpus-per-node 2 --idle-seconds 20 >launcher.out 2>&1 &
  local launcher=$!
  eventually 30 enough_rows 5
  kill -9 "$search"
  wait "$search" 2>/dev/null || true
  has "$("$kolo" hps tpe --problem benchmark.hps.ackley --evaluator jobs --num-workers 4 --max-evals 30 --log-dir log --resume --quiet)" \
    '30 evaluations, 0 failed'
  kill "$launcher"
  wait "$launcher" 2>/dev/null || true
  same "$(ids log | sort -n | tr '\n' ' ')" "$(seq 0 29 | tr '\n' ' ')"
  # No evaluation was made twice.
  same "$("$kolo" ls jobs --json | grep -c '"name": "task')" 30
  refused 1 'KOLO_DB' env -u KOLO_DB "$kolo" hps tpe --problem benchmark.hps.ackley --evaluator jobs --max-evals 1 --log-dir none
}

# The template builds and runs at once.
new_problem() {
  has "$("$kolo" new-problem hps mine)" 'cmake -S mine'
  CXX="$compiler" cmake -S mine -B mine/build >/dev/null && cmake --build mine/build >/dev/null
  has "$("$kolo" hps ambs --problem mine/build/libmine.so:Problem --run mine/build/libmine.so:run --max-evals 20 \
    --num-workers 2 --log-dir log --quiet)" '20 evaluations, 0 failed'
  refused 1 'already' "$kolo" new-problem hps mine
  refused 2 'must be hps or nas' "$kolo" new-problem cnn x
  refused 2 'letters' "$kolo" new-problem hps ../x
  refused 1 'Problem' "$kolo" hps ambs --problem mine/build/libmine.so:Nothing --run mine/build/libmine.so:run
}

# One command: folder, database, application, job, allocation.
# A search as a job on one node, whose allocation ends in the middle.
allocations() {
  new_database
  printf 'x: {uniform: [0, 1]}\n' >space.yaml
  printf '#!/bin/sh\nsleep 0.3\necho $KOLO_PARAM_X\n' >run.sh
  chmod +x run.sh
  "$kolo" app --name search --exec "$kolo hps random --problem $scratch/space.yaml --evaluator jobs"
  s="$("$kolo" job --name s --workflow W --app search --args "--max-evals 8 -- $scratch/run.sh")"
  log="$data/W/s_$s"
  enough() { [[ -e "$log/results.csv" && "$(rows "$log")" -ge "$1" ]]; }
  "$kolo" launcher --nodes 1 --persistent --grace-seconds 5 &
  eventually 30 enough 2
  kill %1
  wait %1 || true
  same "$(state "$s")" RESTART_READY
  launcher --nodes 1 --cpus-per-node 1 >/dev/null
  same "$(state "$s")" JOB_FINISHED
  same "$(ids "$log" | sort -n | tr '\n' ' ')" '0 1 2 3 4 5 6 7 '
  if grep -q ',F_' "$log/results.csv"; then fail "an evaluation that was cut off counts as a failure: $(cat "$log/results.csv")"; fi
  if compgen -G "$log/earlier-*" >/dev/null; then fail 'the search began anew'; fi
  # A study that is a job continues, too.
  for samples in 1 2; do
    KOLO_JOB_ID="$s" "$kolo" tune --space space.yaml --metric x --mode max --num-samples "$samples" --name again \
      --local-dir results --quiet -- sh -c 'echo x=$KOLO_PARAM_X' >/dev/null || fail "session $samples of a study that is a job"
  done
  # What can never run is said, instead of waiting for ever.
  g="$("$kolo" job --name g --workflow W --app search --args "--num-gpus-per-task 2 --max-evals 8 -- $scratch/run.sh")"
  launcher --nodes 1 >/dev/null
  same "$(state "$g")" FAILED
  has "$("$kolo" explain "$g")" 'it needs 2 GPUs on a node, and nodes have 0'
}

submit() {
  unset KOLO_DB
  "$kolo" submit hps ambs -w demo -n 2 -t 5 -j serial --scheduler local --problem benchmark.hps.polynome2 --max-evals 10 \
    --num-evals-per-node 4 --launcher-flags '--idle-seconds 0.3 --cpus-per-node 8'
  export KOLO_DB="$scratch/demo"
  eventually 60 is_state 1 JOB_FINISHED
  same "$(grep -c ',DONE,' demo/data/demo/demo_1/results.csv)" 10
  same "$(ls -d demo/data/demo/task*_* | wc -l)" 10
  launch_finished() { "$kolo" ls queues | grep -q finished; }
  eventually 20 launch_finished
  unset KOLO_DB
  # With a program of one's own, named from here.
  printf 'x: {uniform: [0, 1]}\n' >space.yaml
  printf '#!/bin/sh\n[ "$1" = "$KOLO_PARAM_X" ] && echo "$1"\n' >prog
  chmod +x prog
  "$kolo" submit hps random -w own -n 1 -t 5 --scheduler local --problem space.yaml --max-evals 3 --num-evals-per-node 4 \
    --launcher-flags '--idle-seconds 0.3 --cpus-per-node 8' -- ./prog {x}
  export KOLO_DB="$scratch/own"
  eventually 60 is_state 1 JOB_FINISHED
  same "$(grep -c ',DONE,' own/data/own/own_1/results.csv)" 3
  unset KOLO_DB
  # DeepHyper's older form, with no name of a search.
  printf 'export SET_UP=yes\n' >setup.sh
  PATH=/usr/bin:/bin KOLO_BATCH_SYSTEM=cobalt "$kolo" submit hps test -p deephyper.benchmark.hps.polynome2.Problem \
    -r deephyper.benchmark.hps.polynome2.run -t 60 -q debug-cache-quad -n 4 -A datascience -j mpi -as setup.sh --dry-run >script
  for line in '#COBALT -n 4' '#COBALT -t 60' '#COBALT -q debug-cache-quad' '#COBALT -A datascience' '--job-mode mpi' '--wf-filter test' \
    'hps ambs' "$scratch/test" '#   export SET_UP=yes'; do
    has "$(<script)" "$line"
  done
  [[ ! -e test ]] || fail 'a dry run made a folder'
  refused 2 '--problem is missing' "$kolo" submit hps ambs -w x
  refused 2 'the name of the workflow is missing' "$kolo" submit hps ambs --problem benchmark.hps.ackley
  refused 2 'must be hps or nas' "$kolo" submit cnn x
  refused 2 '-pe NAME 2' "$kolo" submit hps ambs -w refused -n 2 --scheduler grid-engine --problem benchmark.hps.ackley
  [[ ! -e refused ]] || fail 'what was refused left a database behind'
  # What the search would refuse on its node is refused here.
  refused 2 "did you mean 'ambs'" "$kolo" submit hps amsb --problem benchmark.hps.ackley -n 1
  refused 1 'benchmark.hps.ackley' "$kolo" submit hps ambs -w x --problem benchmark.hps.akley
  refused 2 'acquisition' "$kolo" submit hps ambs -w x --problem benchmark.hps.ackley --set acquisition=best
  refused 2 'is not' "$kolo" submit hps ambs -w x --problem benchmark.hps.ackley --max-eval x
  refused 1 'cannot read' "$kolo" submit hps ambs -w x --problem benchmark.hps.ackley --warm-start nothing.csv
  [[ ! -e x ]] || fail 'what was refused left a database behind'
  has "$("$kolo" submit hps ambs -w x --problem benchmark.hps.ackley --scheduler local --gpus-per-node 4 --num-gpus-per-task 2 --dry-run)" \
    '--gpus-per-node 4'
  printf 'x: {uniform: [0, 1]}\n' >space.yaml
  printf '#!/bin/sh\necho $1\n' >run.sh
  chmod +x run.sh
  has "$("$kolo" submit hps random -w x --problem space.yaml --scheduler local --dry-run -- ./run.sh {x})" 'run.sh'
  refused 2 'placeholder' "$kolo" submit hps random -w x --problem space.yaml --scheduler local --dry-run -- ./run.sh {xx}
  refused 2 'agents need' "$kolo" submit nas ppo -w x -n 2 --num-agents 3 --problem benchmark.nas.linear_reg
}

bad_input() {
  refused 2 'SEARCH is missing' "$kolo" hps
  refused 2 "did you mean 'ambs'" "$kolo" hps amb --problem benchmark.hps.ackley
  refused 2 '--problem is missing' "$kolo" hps ambs
  refused 1 'benchmark.hps.ackley' "$kolo" hps ambs --problem benchmark.hps.ackle
  refused 1 'known: thread, process, ranks, jobs' "$kolo" hps ambs --problem benchmark.hps.ackley --evaluator dask
  refused 2 'the search random has no option --kappa' "$kolo" hps random --problem benchmark.hps.ackley --kappa 1
  refused 2 'did you mean' "$kolo" hps random --problem benchmark.hps.ackley --max-evalz 3
  refused 2 'trials of 2 ranks need' "$kolo" hps random --problem benchmark.hps.ackley --num-ranks-per-node 2 --max-evals 2
  refused 2 'must be uuid or to_dict' "$kolo" hps random --problem benchmark.hps.ackley --cache-key sha --max-evals 2
  printf 'x: {uniform: [5, 1]}\n' >bad.yaml
  refused 2 'x' "$kolo" hps random --problem bad.yaml --max-evals 1 -- true
  printf 'x: [0, 1]\n' >constants.yaml
  refused 2 'no parameter of the problem varies' "$kolo" hps random --problem constants.yaml --max-evals 1 -- true
  printf 'x: {uniform: [0, 1]}\n' >good.yaml
  refused 2 'no run function' "$kolo" hps random --problem good.yaml --max-evals 1
  refused 2 'ET, RF, GP or DUMMY' "$kolo" hps ambs --problem benchmark.hps.ackley --surrogate-model XT --max-evals 1
  # A results.csv that is cut in the middle of a line is gone on with; one that is broken inside is named.
  "$kolo" hps random --problem benchmark.hps.ackley --evaluator serial --max-evals 4 --log-dir log --quiet >/dev/null
  truncate -s -7 log/results.csv
  has "$("$kolo" hps random --problem benchmark.hps.ackley --evaluator serial --max-evals 6 --log-dir log --resume --quiet)" '6 evaluations'
  same "$(ids log | sort -n | tr '\n' ' ')" '0 1 2 3 4 5 '
  sed -i '3s/,DONE//' log/results.csv
  refused 1 'results.csv:3' "$kolo" hps random --problem benchmark.hps.ackley --evaluator serial --max-evals 8 --log-dir log --resume
  refused 1 'cannot be resumed' "$kolo" hps tpe --problem benchmark.hps.ackley --evaluator serial --max-evals 8 --log-dir log --resume
}

"$case_name"
