#!/usr/bin/env bash
# An elastic job on nodes of Slurm: one is added while it runs, drained, and resumed.
#
#   elastic_test.sh KOLO PROGRAM
set -euo pipefail
here="$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=slurm.sh
source "$here/slurm.sh"
# shellcheck source=../hosts/hosts.sh
source "$here/../hosts/hosts.sh"
# shellcheck source=../hosts/job_log.sh
source "$here/../hosts/job_log.sh"
kolo="$1" program="$2"

hosts_up 2
slurm_up_on_hosts
trap 'slurm_down; hosts_down' EXIT
log="$hosts_dir/log"
other="${hosts[1]}"
at() { timeout 60 "$slurm_dir/at" "${hosts[0]}" "$@"; }

# As in docs/elastic-runs.md.
cat >"$hosts_dir/nodes.sh" <<'X'
#!/bin/sh
nodes=$(squeue --noheader --name=elastic --states=RUNNING --format=%N | paste -sd, -)
[ -z "$nodes" ] || sinfo --noheader --Node --nodes="$nodes" --format='%N %T' | awk '$2 !~ /drain|down/ { print $1 }'
X
chmod +x "$hosts_dir/nodes.sh"

"$slurm_dir/at" "${hosts[0]}" salloc -Q -K -J elastic -w "${hosts[0]}" "$kolo" run --min-np 1 \
  --host-discovery-script "$hosts_dir/nodes.sh" "$program" --steps 100000 --pause-ms 10 >"$log" 2>&1 </dev/null &
launcher=$!
until_said 30 'is rank 0 of 1' 1

at sbatch -Q -J elastic -w "$other" -o /dev/null --wrap 'sleep 300' >/dev/null
until_said 30 'is rank 1 of 2' 1

at scontrol update NodeName="$other" State=DRAIN Reason=test
until_said 30 "host $other is no longer listed" 1
until_said 30 'is rank 0 of 1' 2
until_said 30 'has left at step [0-9]*, correct' 1

at scontrol update NodeName="$other" State=RESUME
until_said 30 'is rank 1 of 2' 2
if grep 'is rank 1 of 2 from step 0 on' "$log" >&2; then bad 'a new rank did not get the state'; fi
if grep 'was killed\|exited with' "$log" >&2; then bad 'a rank has failed'; fi

at scancel --name=elastic
wait "$launcher" || true
printf 'passed\n'
