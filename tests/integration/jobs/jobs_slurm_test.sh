#!/usr/bin/env bash
# kolo submit-launch in a real Slurm of three nodes on this machine.
#
#   jobs_slurm_test.sh CASE KOLO RANK_PROGRAM
set -euo pipefail
case_name="$1" kolo="$2" rank="$3"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=lib.sh
source "$here/lib.sh"
# shellcheck source=../slurm/slurm.sh
source "$here/../slurm/slurm.sh"
slurm_up 3
trap 'slurm_down; cleanup_jobs' EXIT
export KOLO_BATCH_SYSTEM=slurm
new_database
"$kolo" app --name where --exec "sh -c 'sleep 1; echo at \$SLURMD_NODENAME'"
"$kolo" app --name sleep --exec 'sleep 60'
"$kolo" app --name ranks --exec "$rank"

queue_is() { "$kolo" ls queues | grep -q "slurm .* $1"; }

case "$case_name" in
  # Three nodes, one job on each; then a program of two ranks on two of them.
  launch)
    for i in 1 2 3; do "$kolo" job --name w --app where --wall-time-minutes 9 >/dev/null; done
    many="$("$kolo" job --name many --app ranks --num-nodes 2 --mpi-flags --mpi=pmi2 --parent 1 --parent 2 --parent 3)"
    "$kolo" submit-launch -n 3 -t 5 -q main --launcher-flags '--idle-seconds 1 --cpus-per-node 2'
    for i in 1 2 3; do eventually 30 is_state "$i" JOB_FINISHED; done
    eventually 60 is_state "$many" JOB_FINISHED
    cat "$data"/default/w_*/w.out | sort >places
    same "$(tr '\n' ' ' <places)" 'at node1 at node2 at node3 '
    same "$(grep -c 'fine' "$data/default/many_$many/many.out")" 2
    eventually 60 queue_is finished
    ;;
  # scancel: the launcher ends its task in order, and the job runs again with the next one.
  cancel)
    a="$("$kolo" job --name a --app sleep)"
    "$kolo" submit-launch -n 1 -t 5 --launcher-flags '--persistent --grace-seconds 1'
    eventually 60 is_state "$a" RUNNING
    queue_is running
    scancel "$("$kolo" ls queues | awk '$2 == "slurm" { print $3 }')"
    eventually 60 is_state "$a" RESTART_READY
    has "$("$kolo" ls --history --id "$a")" 'RUN_TIMEOUT'
    eventually 60 queue_is finished
    ;;
  *) printf 'unknown case %s\n' "$case_name" >&2; exit 2 ;;
esac
