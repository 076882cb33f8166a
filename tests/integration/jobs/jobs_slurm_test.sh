#!/usr/bin/env bash
# kolo submit-launch in a real Slurm of three nodes on this machine. In the case "hosts" each of them has a network of its own.
#
#   jobs_slurm_test.sh CASE KOLO RANK_PROGRAM
set -euo pipefail
case_name="$1" kolo="$2" rank="$3"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=lib.sh
source "$here/lib.sh"
# shellcheck source=../slurm/slurm.sh
source "$here/../slurm/slurm.sh"
# shellcheck source=../hosts/hosts.sh
source "$here/../hosts/hosts.sh"
on_node=()
if [[ "$case_name" == hosts ]]; then
  hosts_up 3
  slurm_up_on_hosts
  trap 'slurm_down; hosts_down; cleanup_jobs' EXIT
  on_node=(slurm_at "${hosts[0]}")
else
  kind=''
  if [[ "$case_name" == node_lost ]]; then kind=mortal; fi
  slurm_up 3 "$kind"
  trap 'slurm_down; cleanup_jobs' EXIT
fi
export KOLO_BATCH_SYSTEM=slurm
new_database
# Each of three keeps its node until all have one.
mkdir here
"$kolo" app --name where --exec "sh -c 'touch $PWD/here/\$KOLO_JOB_ID; until [ \$(ls $PWD/here | wc -l) = 3 ]; do sleep 0.05; done; echo at \$SLURMD_NODENAME'"
"$kolo" app --name sleep --exec 'sleep 60'
"$kolo" app --name ranks --exec "$rank"

queue_is() { launch_is 1 "$1" ${on_node[@]+"${on_node[@]}"}; }

case "$case_name" in
  # Three nodes, one job on each; then a program of two ranks on two of them.
  launch)
    for i in 1 2 3; do "$kolo" job --name w --app where --wall-time-minutes 9 >/dev/null; done
    many="$("$kolo" job --name many --app ranks --num-nodes 2 --mpi-flags --mpi=pmi2 --parent 1 --parent 2 --parent 3)"
    "$kolo" submit-launch -n 3 -t 5 -q main --launcher-flags '--idle-seconds 1 --cpus-per-node 2'
    for i in 1 2 3; do eventually 30 is_state "$i" JOB_FINISHED; done
    cat "$data"/default/w_*/w.out | sort >places
    same "$(tr '\n' ' ' <places)" 'at node1 at node2 at node3 '
    # MPICH's own end crashes under ThreadSanitizer, with or without kolo.
    if [[ -z "${KOLO_TEST_SANITIZED:-}" ]]; then
      eventually 60 is_state "$many" JOB_FINISHED
      same "$(grep -c 'fine' "$data/default/many_$many/many.out")" 2
    fi
    eventually 60 queue_is finished
    ;;
  # Taken out of the queue: the launcher ends its task in order, and the job runs again with the next one.
  cancel)
    a="$("$kolo" job --name a --app sleep)"
    "$kolo" submit-launch -n 1 -t 5 --launcher-flags '--persistent --grace-seconds 1'
    eventually 60 is_state "$a" RUNNING
    queue_is running
    same "$("$kolo" rm queues 1)" 'cancelled 1 launch'
    eventually 60 is_state "$a" RESTART_READY
    has "$("$kolo" ls --history --id "$a")" 'RUN_TIMEOUT'
    eventually 60 queue_is finished
    ;;
  # A node of the allocation dies: the launcher goes on with the others, and what ran there runs again.
  node_lost)
    for i in 1 2 3; do "$kolo" job --name s --app sleep >/dev/null; done
    "$kolo" submit-launch -n 3 -t 5 --launcher-flags '--persistent --grace-seconds 1 --cpus-per-node 2'
    for i in 1 2 3; do eventually 30 is_state "$i" RUNNING; done
    there="$("$kolo" ls --history | awk '/^Job / { id = $2 } /RUNNING\] on node3/ { print id }')"
    slurm_lose node3
    eventually 60 is_state "$there" RESTART_READY
    has "$("$kolo" ls --history --id "$there")" 'node node3 was lost: '
    other=$((there % 3 + 1))
    "$kolo" kill --id "$other" >/dev/null
    eventually 20 is_state "$there" RUNNING
    if "$kolo" ls --history --id "$other" | grep -q RESTART; then fail 'the launcher did not outlive the node'; fi
    queue_is running
    ;;
  # The allocation ends before the launcher thinks so: Slurm tells it, and what runs, runs again with the next one.
  time_limit)
    "$kolo" app --name long --exec 'sleep 600' # Slurm looks at limits only now and then
    a="$("$kolo" job --name a --app long)"
    "$kolo" submit-launch -n 2 -t 1 --launcher-flags '--persistent --grace-seconds 1 --time-limit-minutes 30'
    eventually 30 is_state "$a" RUNNING
    eventually 120 is_state "$a" RESTART_READY
    has "$("$kolo" ls --history --id "$a")" 'RUN_TIMEOUT] the launcher was told to end'
    eventually 60 queue_is finished
    ;;
  # Programs of several nodes by kolo run, which reaches them by ssh, started by the launcher inside the allocation.
  hosts)
    many="$("$kolo" job --name many --app ranks --num-nodes 2 --ranks-per-node 2)"
    "${on_node[@]}" "$kolo" submit-launch -n 3 -t 5 --launcher-flags '--runner kolo --idle-seconds 1 --cpus-per-node 2'
    eventually 60 is_state "$many" JOB_FINISHED
    same "$(grep -c 'of 4 over shm+tcp: fine' "$data/default/many_$many/many.out")" 4
    eventually 60 queue_is finished
    ;;
  *) printf 'unknown case %s\n' "$case_name" >&2; exit 2 ;;
esac
