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
  refused 1 'the cluster has too few slots for 7 ranks' "$kolo" run --cluster lab --cluster-wait 50 -np 7 true
  # A run that is killed leaves nothing, and its slots are free when its ranks are gone.
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" run --cluster lab -np 6 "$rank_program" loop "$work" >"$work/loop.log" 2>&1 </dev/null &
  local launcher=$!
  running() { [[ -e "$work/rank-5.pid" ]]; }
  until_true 20 'six ranks run' running
  refused 1 'kolo run .* of root@' "$kolo" run --cluster lab -np 1 true
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
  # The same for a search in DeepHyper's terms.
  at_head "$kolo" hps ambs --problem benchmark.hps.ackley --evaluator cluster --max-evals 6 --log-dir "$work/search" ||
    bad "kolo hps ended with $?"
  (($(wc -l <"$work/search/results.csv") == 7)) || bad "not six evaluations: $(<"$work/search/results.csv")"
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

# --- changes and losses ---

custodian_of() { sed -n 's/.* //p' "$XDG_STATE_HOME/kolo/standing/lab@$1"; }

# Workers come and go while a study runs.
case_change() {
  cluster_file "${hosts[1]}"
  up
  export KOLO_HOST_LEASE=2
  study moved --np 2 --num-samples 2
  until_true 20 'a trial on the worker' said_at_least moved "on ${hosts[1]} " 2
  # A worker more; what stands is left alone.
  cluster_file "${hosts[1]}" "${hosts[2]}"
  up
  says "${hosts[1]}: stands already"
  at_head "$kolo" status || bad 'kolo status failed'
  says "cluster lab: 3 hosts, 2 of 6 slots free"
  # A custodian that is killed takes its tasks with it. It is shown as lost, and can be started again.
  kill -9 "$(custodian_of "${hosts[1]}")"
  lost() { ! at_head "$kolo" status; }
  until_true 10 'the worker is lost' lost
  says "^${hosts[1]} *lost"
  rmdir "$work/cores/${hosts[1]}".*  # its trial could not
  up
  at_head "$kolo" status || bad 'the worker does not stand again'
  # The study has lost the trial there, which continues; the worker is used again.
  again() { (($(said moved ' on ') >= 6)); }
  until_true 30 'the trial runs again' again
  touch "$work/go"
  study_ends moved
  [[ ! -e "$work/clashes" ]] || bad "$(<"$work/clashes")"
  # A drained host takes nothing new.
  at_head "$kolo" drain lab "${hosts[2]}" || bad 'kolo drain failed'
  refused 1 'is drained' "$kolo" run --cluster lab -np 6 true
  at_head "$kolo" drain lab "${hosts[2]}" --undo || bad 'kolo drain --undo failed'
  at_head "$kolo" run --cluster lab -np 6 true || bad 'all six slots cannot be used'
  # A worker that is no longer in the file leaves.
  cluster_file "${hosts[1]}"
  up
  says "${hosts[2]}: is no longer in the file and has ended"
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# A host that is cut off is said to be lost within bounded time, by every command; nothing of it stays when it is back.
case_cut() {
  cluster_file "${hosts[1]}"
  up
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" run --cluster lab -np 4 "$rank_program" loop "$work" >"$work/loop.log" 2>&1 </dev/null &
  local launcher=$!
  running() { [[ -e "$work/rank-3.pid" ]]; }
  until_true 20 'four ranks run' running
  cut_link "${hosts[1]}"
  refused 1 "^${hosts[1]} *lost" "$kolo" status
  refused 1 "kolo: ${hosts[1]}" "$kolo" up --timeout 3 "$work/cluster.yaml"
  refused 1 "kolo: ${hosts[1]}" "$kolo" down --timeout 2
  until_true 40 'the run ends' ended "$launcher"
  until_true 30 'the ranks that were cut off end' ended "$(<"$work/rank-3.pid")"
  heal_link "${hosts[1]}"
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# What others try is refused, and what is killed in the middle can be repeated.
case_trust() {
  cluster_file "${hosts[1]}"
  # A key of the file that is not known, a host that does not answer, names that nobody has.
  sed 's/setup_commands/setup_comands/' "$work/cluster.yaml" >"$work/typo.yaml"
  refused 2 "did you mean 'setup_commands'" "$kolo" up "$work/typo.yaml"
  sed "s/worker_ips: .*]/worker_ips: [nosuchhost]/" "$work/cluster.yaml" >"$work/nowhere.yaml"
  refused 1 'kolo: nosuchhost: .*resolve' "$kolo" up "$work/nowhere.yaml"
  at_head "$kolo" down --force || bad 'kolo down failed'
  # `kolo up` that is killed when a custodian stands, but before anybody has written down where.
  sed "s|^setup_commands.*|worker_setup_commands: ['touch $work/begun; until [ -e $work/go ]; do sleep 0.1; done']|" "$work/cluster.yaml" >"$work/slow.yaml"
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" up "$work/slow.yaml" >"$work/slow.log" 2>&1 </dev/null &
  local killed=$!
  begun() { [[ -e "$work/begun" && -s "$XDG_STATE_HOME/kolo/standing/lab@${hosts[0]}" ]]; }
  until_true 20 'the head stands' begun
  kill -9 "$killed"
  touch "$work/go"
  up
  at_head "$kolo" status || bad 'kolo status failed'
  says '4 of 4 slots free'
  # Another key.
  cp -r "$XDG_STATE_HOME/kolo" "$work/mine"
  (umask 077 && head -c 32 /dev/urandom >"$XDG_STATE_HOME/kolo/clusters/lab/key")
  refused 1 'another key' "$kolo" status
  refused 1 'another key' "$kolo" exec lab -- true
  cp "$work/mine/clusters/lab/key" "$XDG_STATE_HOME/kolo/clusters/lab/key"
  # Garbage is not answered.
  local address
  address="$(sed 's/ .*//' "$XDG_STATE_HOME/kolo/standing/lab@${hosts[1]}")"
  said="$(run_on "${hosts[0]}" timeout 20 bash -c "exec 3<>/dev/tcp/${address%:*}/${address#*:}; printf 'GET / HTTP/1.0\r\n\r\n' >&3; cat <&3")"
  [[ -z "$said" ]] || bad "a stranger is told: $said"
  # Two at once: one of them is told to wait.
  at_head flock "$XDG_STATE_HOME/kolo/clusters/.lab.lock" "$kolo" down lab && bad 'two commands changed the cluster at once'
  says 'another command changes cluster'
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
