#!/usr/bin/env bash
# kolo submit-launch in a real Grid Engine of three hosts, each with a network of its own.
#
#   jobs_grid_engine_test.sh CASE KOLO RANK_PROGRAM
set -euo pipefail
case_name="$1" kolo="$2" rank="$3"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=lib.sh
source "$here/lib.sh"
# shellcheck source=../hosts/hosts.sh
source "$here/../hosts/hosts.sh"
# shellcheck source=../grid_engine/grid_engine.sh
source "$here/../grid_engine/grid_engine.sh"
grid_engine_possible
hosts_up 3
trap 'grid_engine_down; hosts_down || true; cleanup_jobs' EXIT
grid_engine_up_on_hosts
on_node=(run_on "${hosts[0]}")
export KOLO_BATCH_SYSTEM=grid-engine
new_database
# The first run is cut off, the second ends well.
"$kolo" app --name twice --exec "sh -c 'if [ -e again ]; then echo done; else touch again; sleep 600; fi'"

# submit NODES WORDS FLAG…: words for the launcher, directives for Grid Engine
submit() {
  local nodes="$1" words="$2" flag options=()
  shift 2
  for flag in "$@"; do options+=(--sched-flags "$flag"); done
  "${on_node[@]}" "$kolo" submit-launch -n "$nodes" -t 5 ${options[@]+"${options[@]}"} \
    --launcher-flags "--grace-seconds 1 --cpus-per-node 2 $words"
}
queue_is() { launch_is "$1" "$2" "${on_node[@]}"; }
number_of() { "${on_node[@]}" "$kolo" ls queues | awk -v n="$1" '$1 == n { print $3 }'; }

case "$case_name" in
  # Three nodes, one job on each; then a program of four ranks on two of them, by ssh.
  launch)
    mkdir here
    "$kolo" app --name where --exec "sh -c 'touch $PWD/here/\$KOLO_JOB_ID; until [ \$(ls $PWD/here | wc -l) = 3 ]; do sleep 0.05; done; hostname'"
    "$kolo" app --name ranks --exec "$rank"
    for i in 1 2 3; do "$kolo" job --name w --app where --wall-time-minutes 9 >/dev/null; done
    many="$("$kolo" job --name many --app ranks --num-nodes 2 --ranks-per-node 2 --parent 1 --parent 2 --parent 3)"
    refused 2 '-pe NAME 3' submit 3 ''
    refused 1 'parallel environment "nothing" does not exist' submit 3 '' '-pe nothing 3'
    queue_is 1 submit-failed || fail 'what was refused is shown as something else'
    has "$(submit 3 '--idle-seconds 1' '-pe nodes 3' '-q all.q')" 'submitted launch 2 as grid-engine job'
    for i in 1 2 3; do eventually 60 is_state "$i" JOB_FINISHED; done
    same "$(cat "$data"/default/w_*/w.out | sort | tr '\n' ' ')" "${hosts[*]} "
    eventually 60 is_state "$many" JOB_FINISHED
    same "$(grep -c 'of 4 over shm+tcp: fine' "$data/default/many_$many/many.out")" 4
    eventually 60 queue_is 2 finished
    ;;
  # Taken out of the queue: the launcher ends its tasks in order, and they run again with the next one. A launch that waits is just gone.
  cancel)
    a="$("$kolo" job --name a --app twice)"
    b="$("$kolo" job --name b --app twice)"
    submit 2 '--persistent' '-pe nodes 2'
    eventually 60 is_state "$a" RUNNING
    eventually 60 is_state "$b" RUNNING
    eventually 60 queue_is 1 running
    submit 1 '--idle-seconds 1' '-h'
    queue_is 2 queued || fail 'a launch that is held is not shown as queued'
    same "$("${on_node[@]}" "$kolo" rm queues 1 2)" 'cancelled 2 launches'
    for i in "$a" "$b"; do
      eventually 60 is_state "$i" RESTART_READY
      has "$("$kolo" ls --history --id "$i")" 'RUN_TIMEOUT] the launcher was told to end'
    done
    eventually 60 queue_is 1 finished
    eventually 60 queue_is 2 finished
    submit 1 '--idle-seconds 1'
    for i in "$a" "$b"; do eventually 60 is_state "$i" JOB_FINISHED; done
    eventually 60 queue_is 3 finished
    ;;
  # The allocation ends before the launcher thinks so: Grid Engine tells it, and what runs, runs again with the next one.
  time_limit)
    a="$("$kolo" job --name a --app twice)"
    # Where the task has not begun before the end, longer.
    launches=0
    for seconds in 6 40 120; do
      submit 1 '--persistent --time-limit-minutes 30' "-l h_rt=$seconds"
      eventually 200 queue_is $((++launches)) finished
      ! is_state "$a" RESTART_READY || break
    done
    has "$("$kolo" ls --history --id "$a")" 'RUN_TIMEOUT] the launcher was told to end'
    submit 1 '--idle-seconds 1'
    eventually 60 is_state "$a" JOB_FINISHED
    ;;
  # A master that does not answer, and a launch that cannot start.
  trouble)
    a="$("$kolo" job --name a --app twice)"
    submit 1 '--persistent'
    eventually 60 is_state "$a" RUNNING
    submit 1 '--idle-seconds 1' '-o /nowhere/log'
    stuck() { [[ "$("${on_node[@]}" "$kolo" ls queues 2>&1)" == *"qstat answered: $(number_of 2) "*' Eqw '* ]]; }
    eventually 60 stuck
    queue_is 2 queued || fail 'a launch with an error is not shown as queued'
    eventually 60 queue_is 1 running
    grid_engine_stop_master
    has "$("${on_node[@]}" "$kolo" ls queues 2>&1)" 'unable to send message to qmaster'
    queue_is 1 unknown || fail 'without a master a launch is not unknown'
    has "$("${on_node[@]}" "$kolo" explain "$a" 2>&1)" 'RUNNING'
    refused 1 'unable to send message to qmaster' submit 1 ''
    # The launcher needs no master.
    "$kolo" kill --id "$a" >/dev/null
    b="$("$kolo" job --name b --app twice)"
    eventually 60 is_state "$b" RUNNING
    grid_engine_start_master
    queue_is 1 running || fail 'the master is back, and its job is not'
    queue_is 3 submit-failed || fail 'what could not be submitted is shown as something else'
    ;;
  *) printf 'unknown case %s\n' "$case_name" >&2; exit 2 ;;
esac
