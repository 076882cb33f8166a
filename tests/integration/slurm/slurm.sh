# A Slurm cluster of this machine for tests: slurmctld, and one slurmd for each of several nodes.
# Sourced, not run.
#
#   slurm_up 2            starts it and waits until all nodes are idle; exports SLURM_CONF, so that srun, sbatch … use it.
#                         Returns 77 (after saying why) where that cannot be.
#   slurm_up_on_hosts     the same with a node on each of the hosts of hosts.sh, which must be up; the controller is on
#                         the first, and commands of Slurm are run there: slurm_at "${hosts[0]}" srun …
#   slurm_up 3 mortal     each node has its process numbers to itself, so that all of it can end at once. MPI libraries, which
#                         take these nodes for one machine, do not work between them then.
#   slurm_lose NODE       such a node is gone, as if its power had failed. Slurm finds out some 25 s later.
#   slurm_down            ends it; called at exit by itself
#
# Ports and files are the caller's own, so that several clusters can exist at once. Their munged is shared: it is started if
# none is running and then left alone.
# shellcheck shell=bash

slurm_dir=''
_slurm_pids=()
declare -A _slurm_nodes=() # what each node was started as

_slurm_say() { printf 'slurm: %s\n' "$*" >&2; }

_slurm_possible() {
  local tool
  if ((EUID != 0)); then
    _slurm_say 'skipped: the daemons need root'
    return 77
  fi
  for tool in slurmctld slurmd srun sinfo munged munge; do
    if ! command -v "$tool" >/dev/null; then
      _slurm_say "skipped: $tool is not installed (packages slurm-wlm, slurm-client, munge)"
      return 77
    fi
  done
}

_slurm_start_munge() {
  munge -n >/dev/null 2>&1 && return
  install -d -o munge -g munge -m 755 /run/munge
  # It stays: a lock that this shell has must not stay with it.
  (
    for fd in /proc/"$BASHPID"/fd/*; do
      fd="${fd##*/}"
      ((fd <= 2)) || eval "exec $fd>&-"
    done
    runuser -u munge -- munged
  ) || munge -n >/dev/null # somebody else may have been faster
}

# So many ports in a row that nobody listens on.
_slurm_free_ports() {
  local count="$1" first i
  for ((i = 0; i < 50; i++)); do
    first=$((20000 + RANDOM % 10000))
    ss -Hltn | awk '{ sub(/.*:/, "", $4); print $4 }' |
      awk -v a="$first" -v b="$((first + count))" '$1 >= a && $1 < b { found = 1 } END { exit found }' && break
  done
  printf '%s\n' "$first"
}

slurm_up() {
  local count="$1" kind="${2:-}" port i
  _slurm_prepare || return
  local alone=() node_timeout=30
  if [[ "$kind" == mortal ]]; then
    alone=(unshare --pid --fork --mount-proc --kill-child)
    node_timeout=5
  fi
  port="$(_slurm_free_ports $((count + 1)))"
  _slurm_write_conf localhost 127.0.0.1 "$port" \
    "NodeName=node[1-$count] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + count))]"
  setsid slurmctld -D >"$slurm_dir/slurmctld.out" 2>&1 </dev/null &
  _slurm_pids+=($!)
  for ((i = 1; i <= count; i++)); do
    mkdir "$slurm_dir/tmp.node$i"
    setsid ${alone[@]+"${alone[@]}"} slurmd -D -N "node$i" >"$slurm_dir/slurmd$i.out" 2>&1 </dev/null &
    _slurm_pids+=($!)
    _slurm_nodes[node$i]=$!
  done
  _slurm_wait_until_idle "$count"
}

slurm_up_on_hosts() {
  local i name nodes=''
  _slurm_prepare || return
  for i in "${!hosts[@]}"; do
    nodes+="NodeName=${hosts[i]} NodeAddr=10.77.0.$((i + 1)) Port=17001"$'\n'
  done
  _slurm_write_conf "${hosts[0]}" 10.77.0.1 16817 "$nodes"
  # Not ip netns exec, which mounts another /sys: slurmd would miss its cgroups there.
  cat >"$slurm_dir/at" <<'X'
#!/usr/bin/env bash
# at HOST COMMAND…
name="$1"
shift
exec nsenter --net="/run/netns/$name" unshare --uts bash -c 'hostname "$0" && exec "$@"' "$name" "$@"
X
  chmod +x "$slurm_dir/at"
  "$slurm_dir/at" "${hosts[0]}" slurmctld -D >"$slurm_dir/slurmctld.out" 2>&1 </dev/null &
  _slurm_pids+=($!)
  for name in "${hosts[@]}"; do
    mkdir "$slurm_dir/tmp.$name"
    "$slurm_dir/at" "$name" slurmd -D >"$slurm_dir/slurmd.$name.out" 2>&1 </dev/null &
    _slurm_pids+=($!)
  done
  _slurm_wait_until_idle "${#hosts[@]}" slurm_at "${hosts[0]}"
}

slurm_at() { "$slurm_dir/at" "$@"; }

_slurm_prepare() {
  _slurm_possible || return
  slurm_dir="$(mktemp -d "${TMPDIR:-/tmp}/kolo-slurm.XXXXXX")"
  chmod 755 "$slurm_dir"
  trap slurm_down EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  _slurm_start_munge
  mkdir "$slurm_dir/state"
}

# CONTROLLER ADDRESS PORT NODES
_slurm_write_conf() {
  cat >"$slurm_dir/slurm.conf" <<X
ClusterName=kolo$$
SlurmctldHost=$1($2)
SlurmctldPort=$3
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=cred_expire=5
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1
ReturnToService=2
SlurmdTimeout=${node_timeout:-30}
KillWait=2
StateSaveLocation=$slurm_dir/state
SlurmdSpoolDir=$slurm_dir/spool.%n
TmpFS=$slurm_dir/tmp.%n
SlurmctldPidFile=$slurm_dir/slurmctld.pid
SlurmdPidFile=$slurm_dir/slurmd.%n.pid
SlurmctldLogFile=$slurm_dir/slurmctld.log
SlurmdLogFile=$slurm_dir/slurmd.%n.log
SlurmdParameters=config_overrides
NodeName=DEFAULT CPUs=2 RealMemory=1000 State=UNKNOWN
$4
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
X
  export SLURM_CONF="$slurm_dir/slurm.conf"
}

# COUNT [HOW TO RUN sinfo…]
_slurm_wait_until_idle() {
  local count="$1" i
  shift
  for ((i = 0; i < 300; i++)); do
    [[ "$("$@" sinfo -h -t idle -o %D 2>/dev/null)" == "$count" ]] && return
    sleep 0.1
  done
  tail -n 5 "$slurm_dir"/*.out "$slurm_dir"/*.log >&2
  _slurm_say "the nodes were not idle within 30 s"
  return 1
}

slurm_lose() {
  # With unshare its child goes, the node's first process, and with that all others.
  kill -9 "${_slurm_nodes[$1]}"
  wait "${_slurm_nodes[$1]}" 2>/dev/null || true
}

slurm_down() {
  local pid i
  set +e
  for pid in "${_slurm_pids[@]}"; do kill "$pid" 2>/dev/null; done
  for pid in "${_slurm_pids[@]}"; do
    for ((i = 0; i < 100; i++)); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
  done
  _slurm_pids=()
  [[ -z "$slurm_dir" ]] || rm -rf "$slurm_dir"
}
