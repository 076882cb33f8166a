#!/usr/bin/env bash
# One test of clusters: cluster_test.sh CASE KOLO RANK-PROGRAM
# Ends with 77 where hosts cannot be made.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../hosts/hosts.sh"

case="$1"
kolo="$2"
rank_program="$3"

bad() {
  printf 'FAILED: %s\n' "$*" >&2
  tail -n 20 "$work"/*log >&2
  exit 1
}

# until_true SECONDS WHAT CONDITION…
until_true() {
  local seconds="$1" what="$2"
  shift 2
  _hosts_until "$seconds" "$@" || bad "not within $seconds s: $what"
}

# at_head COMMAND…: on the first host, where the user sits. Its output is in $work/log.
at_head() { run_on "${hosts[0]}" timeout 60 "$@" >"$work/log" 2>&1 </dev/null; }
says() { grep -q -- "$1" "$work/log" || bad "nobody says: $1"; }
# refused STATUS TEXT COMMAND…: the command ends with this status and says this.
refused() {
  local expected="$1" text="$2" status=0
  shift 2
  at_head "$@" || status=$?
  ((status == expected)) || bad "$* ended with $status instead of $expected"
  [[ -z "$text" ]] || says "$text"
}

ended() {
  local state
  state="$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null)" || return 0
  [[ -z "$state" || "$state" == [ZX]* ]]
}

# Our own processes (not sshd's) on any host.
ours_left() {
  local name pid
  for name in "${hosts[@]}"; do
    for pid in $(pids_on "$name"); do
      ended "$pid" && continue
      if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF -e "$kolo" -e "$rank_program" -e "$work/"; then
        printf '%s ' "$pid"
      fi
    done
  done
}
none_left() { [[ -z "$(ours_left)" ]]; }

expect_nothing_left() {
  local pid left
  if ! _hosts_until 15 none_left; then
    for pid in $(ours_left); do ps -o pid,ppid,stat,args -p "$pid" --no-headers >&2 || true; done
    bad 'processes are left on the hosts'
  fi
  left="$(find "$XDG_STATE_HOME/kolo/standing" "$XDG_STATE_HOME/kolo/clusters" -type f ! -name '.*.lock')"
  [[ -z "$left" ]] || bad "files are left: $left"
}

# cluster_file WORKER…: a cluster of the first host and these, with two slots each.
cluster_file() {
  local list=''
  for worker in "$@"; do list+="${list:+, }$worker"; done
  cat >"$work/cluster.yaml" <<Y
cluster_name: lab
provider: {type: hosts, head_ip: ${hosts[0]}, worker_ips: [$list]}
auth: {ssh_user: root, ssh_private_key: $hosts_dir/id}
resources: {slots: 2}
setup_commands: ["hostname >>$work/prepared"]
Y
}

up() { at_head "$kolo" up "$work/cluster.yaml" || bad 'kolo up failed'; }

free_slots() { run_on "${hosts[0]}" "$kolo" status lab --json | grep -A4 '"free"' | sed -n 's/.*"slots": *//p' | awk "{ sum += \$1 } END { print sum }"; }
all_free() { [[ "$(free_slots)" == "$1" ]]; }

case_up() {
  cluster_file "${hosts[1]}" "${hosts[2]}"
  up
  says 'cluster lab is up'
  [[ "$(sort -u "$work/prepared" | wc -l)" == 3 ]] || bad "not prepared on three hosts: $(<"$work/prepared")"
  [[ "$(stat -c %a "$XDG_STATE_HOME/kolo/clusters/lab/key")" == 600 ]] || bad 'others can read the key'
  at_head "$kolo" status || bad 'kolo status failed'
  says 'cluster lab: 3 hosts, 6 of 6 slots free'
  at_head "$kolo" exec lab --all -- hostname || bad 'kolo exec failed'
  for name in "${hosts[@]}"; do says "^$name: $name\$"; done
  at_head "$kolo" exec "$work/cluster.yaml" --host "${hosts[2]}" -- hostname || bad 'kolo exec failed'
  [[ "$(<"$work/log")" == "${hosts[2]}" ]] || bad 'one host has a prefix'
  refused 3 '' "$kolo" exec lab -- sh -c 'exit 3'
  # Again: nothing is started a second time.
  up
  says "${hosts[2]}: stands already"
  [[ "$(wc -l <"$work/prepared")" == 3 ]] || bad 'prepared twice'
  at_head "$kolo" down lab || bad 'kolo down failed'
  says "${hosts[1]}: has ended"
  expect_nothing_left
  refused 1 "there is no cluster" "$kolo" down lab
  refused 1 "there is no cluster 'lab'" "$kolo" status lab
}

case_run() {
  cluster_file "${hosts[1]}" "${hosts[2]}"
  up
  at_head "$kolo" run --cluster lab -np 5 "$rank_program" check "$work" || bad "kolo run ended with $?"
  for r in 0 1; do grep -q "^ok ${hosts[0]} shm+tcp " "$work/rank-$r.result" || bad "rank $r: $(<"$work/rank-$r.result")"; done
  grep -q "^ok ${hosts[2]} " "$work/rank-4.result" || bad "rank 4: $(<"$work/rank-4.result")"
  until_true 5 'all slots are free again' all_free 6
  refused 1 'too few slots are free for 7 ranks' "$kolo" run --cluster lab -np 7 true
  # A run that is killed leaves nothing, and its slots are free when its ranks are gone.
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" run --cluster lab -np 6 "$rank_program" loop "$work" >"$work/loop.log" 2>&1 </dev/null &
  local launcher=$!
  running() { [[ -e "$work/rank-5.pid" ]]; }
  until_true 20 'six ranks run' running
  refused 1 'kolo run kolo_hosts_rank of root@' "$kolo" run --cluster lab -np 1 true
  kill -9 "$launcher"
  until_true 20 'the slots of a killed run are free' all_free 6
  # The processors of two ranks of a host differ.
  at_head "$kolo" run --cluster lab -np 2 sh -c 'grep Cpus_allowed_list /proc/self/status' || bad 'cannot run'
  [[ "$(sed 's/.*://' "$work/log" | sort -u | wc -l)" == 2 ]] || bad 'two ranks share a processor'
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# --- studies ---

# study NAME ARGUMENTS…: a study on the cluster, in the background. Its trials hold a folder for each of their
# processors, which nobody else may have, until the file `go` is there.
study() {
  local name="$1"
  shift
  export KOLO_RESULTS="$work/results"
  printf 'x: {uniform: [0, 1]}\n' >"$work/space.yaml"
  cat >"$work/trial.sh" <<'S'
#!/bin/bash
work="$1" kolo="$2" x="$3"
mine="$work/cores/$(hostname).$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)"
mkdir "$mine" || { echo "CLASH at $mine" >>"$work/clashes"; exit 1; }
trap 'rmdir "$mine"' EXIT
trap 'exit 143' TERM
echo "rank $KOLO_RANK on $(hostname) as $$"
until [[ -e "$work/go" ]]; do sleep 0.02; done
[[ "${KOLO_RANK:-0}" != 0 ]] || "$kolo" report loss="$x"
S
  chmod +x "$work/trial.sh"
  mkdir -p "$work/cores"
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" tune --name "$name" --cluster lab --space "$work/space.yaml" \
    --metric loss --mode min --quiet "$@" -- "$work/trial.sh" "$work" "$kolo" {x} >"$work/$name.log" 2>&1 </dev/null &
  studies[$name]=$!
}
declare -A studies=()

# said NAME TEXT: how many ranks of the study have said that.
said() { cat "$work/results/$1"/*/stdout* 2>/dev/null | grep -c -- "$2" || true; }
said_at_least() { (($(said "$1" "$2") >= $3)); }

# study_ends NAME: well, and soon.
study_ends() {
  local status=0
  until_true 40 "the study $1 ends" ended "${studies[$1]}"
  wait "${studies[$1]}" || status=$?
  ((status == 0)) || bad "study $1 ended with $status: $(cat "$work/$1.log" "$work/results/$1"/*/error.txt 2>&1)"
}

case_tune() {
  cluster_file "${hosts[1]}" "${hosts[2]}"
  up
  # Trials of two ranks, one on each host.
  study pairs --np 2 --num-samples 4
  for name in "${hosts[@]}"; do until_true 20 "a trial on $name" said_at_least pairs "on $name " 2; done
  at_head "$kolo" status || bad 'kolo status failed'
  says 'cluster lab: 3 hosts, 0 of 6 slots free'
  says 'study pairs of root@'
  touch "$work/go"
  study_ends pairs
  (($(said pairs ' on ') == 8)) || bad "not eight ranks: $(cat "$work"/results/pairs/*/stdout*)"
  # Trials that take more than a host has.
  study rings --np 4 --num-samples 2
  study_ends rings
  (($(said rings 'rank 3 on ') == 2)) || bad "not two rings: $(cat "$work"/results/rings/*/stdout*)"
  [[ ! -e "$work/clashes" ]] || bad "$(<"$work/clashes")"
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# Two studies share the hosts: each waits for the other's slots, and no processor is given twice.
case_share() {
  cluster_file "${hosts[1]}" "${hosts[2]}"
  up
  study first --np 2 --num-samples 6
  until_true 20 'the first study has all slots' said_at_least first ' on ' 6
  study second --np 2 --num-samples 6
  touch "$work/go"
  study_ends first
  study_ends second
  [[ ! -e "$work/clashes" ]] || bad "$(<"$work/clashes")"
  (($(said second ' on ') == 12)) || bad 'the second study did not get its slots'
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

work=''
hosts_up 3
work="$hosts_dir/work"
mkdir "$work"
export XDG_STATE_HOME="$hosts_dir/state"
"case_$case"
printf 'passed: %s\n' "$case"
